#include "simulator/segment_addresses.h"

#include <algorithm>
#include <utility>

namespace stowage::simulator {
namespace {

constexpr Bytes kSlot = Bytes{32} << 20;

}  // namespace

Bytes SegmentAddresses::take(Bytes size) {
  if (order_ == AddressOrder::rising) return std::exchange(lowest_, lowest_ + size);
  const auto rest = std::find_if(rests_.rbegin(), rests_.rend(),
                                 [&](const Rest& each) { return each.size >= size; });
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
