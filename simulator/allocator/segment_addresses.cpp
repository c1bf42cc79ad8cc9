#include "simulator/allocator/segment_addresses.h"

#include <algorithm>

namespace stowage::simulator {
namespace {

constexpr Bytes kSlot = Bytes{32} << 20;
// Scattered segments: each has a place of its own, since the factor is odd.
constexpr Bytes kPlace = Bytes{1} << 42;
constexpr std::int64_t kPlaces = std::int64_t{1} << 20;
constexpr std::int64_t kFactor = 648'391;

}  // namespace

SegmentAddresses::SegmentAddresses(const std::vector<Range>& taken) {
  if (taken.empty()) return;
  lowest_ = taken.front().address / kSlot * kSlot;
  for (std::size_t i = taken.size(); i-- > 0;) {
    const Bytes end = taken[i].address + taken[i].size;
    Bytes slot_end = (end + kSlot - 1) / kSlot * kSlot;
    if (i + 1 < taken.size()) slot_end = std::min(slot_end, taken[i + 1].address);
    if (slot_end > end) rests_.push_back({end, slot_end - end});
  }
}

Bytes SegmentAddresses::take(Bytes size) {
  if (order_ != kFalling) {
    const std::int64_t factor = kFactor * (2 * std::int64_t{order_} + 1) % kPlaces;
    return kPlace * (++taken_ * factor % kPlaces);
  }
  const auto rest = std::find_if(rests_.rbegin(), rests_.rend(),
                                 [&](const Range& each) { return each.size >= size; });
  if (rest != rests_.rend()) {
    const Bytes address = rest->address;
    rest->address += size;
    rest->size -= size;
    if (rest->size == 0) rests_.erase(std::next(rest).base());
    return address;
  }
  const Bytes slot = (size + kSlot - 1) / kSlot * kSlot;
  lowest_ -= slot;
  if (slot > size) rests_.push_back({lowest_ + size, slot - size});
  return lowest_;
}

}  // namespace stowage::simulator
