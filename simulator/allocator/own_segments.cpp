#include "simulator/allocator/own_segments.h"

#include "simulator/allocator/caching_allocator.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kMiddleSize = Bytes{10} << 20;
constexpr Bytes kMiddleSegment = Bytes{20} << 20;

Bytes in_segments(Bytes bytes, Bytes segment) {
  return (bytes + segment - 1) / segment * segment;
}

}  // namespace

void OwnSegments::add(Bytes block) {
  if (block <= CachingAllocator::kSmallSize) {
    small_ += block;
  } else if (block < kMiddleSize) {
    middle_ += block;
  } else {
    large_ += in_segments(block, CachingAllocator::kSmallSegment);
  }
}

Bytes OwnSegments::bytes() const {
  return in_segments(small_, CachingAllocator::kSmallSegment) +
         in_segments(middle_, kMiddleSegment) + large_;
}

}  // namespace stowage::simulator
