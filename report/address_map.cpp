#include "report/address_map.h"

#include <algorithm>
#include <iterator>

namespace stowage::report {

Bytes AddressMap::take(Bytes bytes) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < bytes) continue;
    const Bytes address = gap->first;
    const Bytes rest = gap->second - bytes;
    gaps_.erase(gap);
    if (rest > 0) gaps_.emplace(address + bytes, rest);
    return address;
  }
  const Bytes address = top_;
  top_ += bytes;
  end_ = std::max(end_, top_);
  return address;
}

void AddressMap::give_back(Bytes address, Bytes bytes) {
  auto next = gaps_.lower_bound(address);
  if (next != gaps_.end() && next->first == address + bytes) {
    bytes += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      gaps_.erase(before);
    }
  }
  if (address + bytes == top_) {
    top_ = address;
  } else {
    gaps_.emplace(address, bytes);
  }
}

}  // namespace stowage::report
