#include "tests/simulator/oracle_allocator.h"

#include <algorithm>
#include <iterator>

namespace stowage::testing {

// The lowest slot with room, else a new one below all others: whole multiples of 32 MiB.
Bytes OracleAllocator::address_of_segment(Bytes size) {
  std::sort(slots_.begin(), slots_.end(),
            [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
  for (Slot& slot : slots_) {
    if (slot.used + size > slot.size) continue;
    slot.used += size;
    return slot.begin + slot.used - size;
  }
  Bytes whole = 33554432;
  while (whole < size) whole += 33554432;
  end_ -= whole;
  slots_.push_back({end_, size, whole});
  return end_;
}

Bytes OracleAllocator::allocate(Bytes bytes) {
  if (bytes == 0) return -1;
  Bytes size = bytes;
  while (size % 512 != 0) ++size;
  const bool small = size <= 1048576;
  auto best = items_.end();
  for (auto item = items_.begin(); item != items_.end(); ++item) {
    if (item->used || item->small != small || item->size < size) continue;
    if (best == items_.end() || item->size < best->size) best = item;  // the first of equals
  }
  if (best == items_.end()) {
    Bytes segment = 2097152;
    if (!small) segment = size < 10485760 ? 20971520 : (size + 2097151) / 2097152 * 2097152;
    if (limit_ >= 0 && reserved() + segment > limit_) {
      for (auto item = items_.begin(); item != items_.end();) {
        const Bytes start = item->segment;
        const bool whole = std::count_if(items_.begin(), items_.end(), [&](const Item& other) {
                             return other.segment == start;
                           }) == 1;
        item = whole && !item->used ? items_.erase(item) : std::next(item);
      }
      if (reserved() + segment > limit_) return -2;
    }
    const Bytes address = address_of_segment(segment);
    best = std::find_if(items_.begin(), items_.end(),
                        [&](const Item& item) { return item.address > address; });
    best = items_.insert(best, {address, segment, address, small, false});
  }
  best->used = true;
  const Bytes rest = best->size - size;
  if (small ? rest >= 512 : rest > 1048576) {
    Item behind = *best;
    behind.address += size;
    behind.size = rest;
    behind.used = false;
    best->size = size;
    items_.insert(std::next(best), behind);
  }
  return best->address;
}

void OracleAllocator::free(Bytes address) {
  if (address < 0) return;
  for (Item& item : items_) {
    if (item.address == address) item.used = false;
  }
  // Free neighbours of one segment become one, until there are none.
  for (auto item = items_.begin(); item != items_.end();) {
    const auto next = std::next(item);
    if (next == items_.end()) break;
    if (!item->used && !next->used && item->segment == next->segment) {
      item->size += next->size;
      items_.erase(next);
    } else {
      item = next;
    }
  }
}

Bytes OracleAllocator::active() const {
  Bytes sum = 0;
  for (const Item& item : items_) sum += item.used ? item.size : 0;
  return sum;
}

Bytes OracleAllocator::reserved() const {
  Bytes sum = 0;
  for (const Item& item : items_) sum += item.size;
  return sum;
}

std::vector<simulator::CachingAllocator::Piece> OracleAllocator::layout() const {
  std::vector<simulator::CachingAllocator::Piece> pieces;
  for (const Item& item : items_) pieces.push_back({item.address, item.size, item.used});
  return pieces;
}

}  // namespace stowage::testing
