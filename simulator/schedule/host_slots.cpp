#include "simulator/schedule/host_slots.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "simulator/schedule/schedule.h"

namespace stowage::simulator {

Bytes slot_bytes(Bytes bytes) {
  return (bytes + kHostSlotAlignment - 1) / kHostSlotAlignment * kHostSlotAlignment;
}

namespace {

// Free blocks of [0, end): by address to merge them, by size to find the best fit.
class FreeBlocks {
 public:
  Bytes take(Bytes bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return grow(bytes);
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(Bytes offset, Bytes bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      const auto merged = next++;
      remove(merged->first, merged->second);
    }
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    add(offset, bytes);
  }

  [[nodiscard]] Bytes end() const { return end_; }

 private:
  // No block is big enough: the arena gets longer, by less when its last block is free.
  Bytes grow(Bytes bytes) {
    Bytes offset = end_;
    if (!by_offset_.empty()) {
      const auto [last, size] = *by_offset_.rbegin();
      if (last + size == end_) {
        remove(last, size);
        offset = last;
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void add(Bytes offset, Bytes size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }

  void remove(Bytes offset, Bytes size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<Bytes, Bytes> by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_size_;
  Bytes end_ = 0;
};

}  // namespace

ArenaLayout lay_out(const std::vector<SlotRequest>& requests) {
  ArenaLayout layout;
  layout.offset.assign(requests.size(), 0);
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return requests[a].first < requests[b].first;
  });

  using Ending = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> taken;
  FreeBlocks blocks;
  for (const std::size_t i : order) {
    const SlotRequest& request = requests[i];
    if (request.bytes <= 0) continue;
    while (!taken.empty() && taken.top().first < request.first) {
      const std::size_t done = taken.top().second;
      taken.pop();
      blocks.give_back(layout.offset[done], slot_bytes(requests[done].bytes));
    }
    layout.offset[i] = blocks.take(slot_bytes(request.bytes));
    taken.emplace(request.last, i);
  }
  layout.bytes = blocks.end();
  return layout;
}

}  // namespace stowage::simulator
