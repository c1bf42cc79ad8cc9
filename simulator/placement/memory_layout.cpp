#include "simulator/placement/memory_layout.h"

#include <cstddef>

#include "simulator/allocator/allocation_sequence.h"

namespace stowage::simulator {
namespace {

// Those of `all` that a step of the period allocates, and the hand-outs of these.
MemoryLayout of_the_period(const AllocationSequence& sequence, const LiveRanges& all) {
  MemoryLayout layout;
  layout.live.instants = all.instants;
  layout.live.of_slot.assign(all.of_slot.size(), -1);
  std::vector<std::int32_t> number(all.ranges.size(), -1);
  for (const AllocationSequence::Step& step : sequence.period) {
    const std::int32_t of = all.of_slot[static_cast<std::size_t>(step.slot)];
    if (step.free || of < 0) continue;
    std::int32_t& range = number[static_cast<std::size_t>(of)];
    if (range < 0) {
      range = static_cast<std::int32_t>(layout.live.ranges.size());
      layout.live.ranges.push_back(all.ranges[static_cast<std::size_t>(of)]);
    }
    layout.hand_outs.push_back({step.event, range});
  }
  for (std::size_t slot = 0; slot < all.of_slot.size(); ++slot) {
    const std::int32_t of = all.of_slot[slot];
    if (of >= 0) layout.live.of_slot[slot] = number[static_cast<std::size_t>(of)];
  }
  return layout;
}

}  // namespace

MemoryLayout memory_layout(const StepIndex& index, const Schedule& schedule,
                           const PageChoice& choice) {
  const AllocationSequence sequence = allocation_sequence(index, schedule);
  MemoryLayout layout = of_the_period(sequence, live_ranges(sequence, index.trace().setup));
  layout.placement = place(layout.live, page_bytes(layout.live, choice));
  for (std::size_t r = 0; r < layout.live.ranges.size(); ++r) {
    layout.address.push_back(layout.region_bytes + layout.placement.offset[r]);
    layout.region_bytes +=
        static_cast<Bytes>(layout.placement.pages_of[r].size()) * layout.placement.page_bytes;
  }
  return layout;
}

Bytes page_bytes(const LiveRanges& live, const PageChoice& choice) {
  STOWAGE_ASSERT(choice.smallest > 0);
  for (Bytes page = choice.smallest;; page *= 2) {
    std::int64_t pages = 0;
    bool shrinks = false;
    for (const LiveRange& range : live.ranges) {
      pages += (range.bytes + page - 1) / page;
      shrinks = shrinks || range.bytes > page;
    }
    if (pages <= choice.most || !shrinks) return page;
  }
}

std::vector<Mapping> mappings(const MemoryLayout& layout) {
  std::vector<Mapping> all;
  const Bytes page = layout.placement.page_bytes;
  Bytes address = 0;
  for (std::size_t r = 0; r < layout.live.ranges.size(); ++r) {
    for (const std::int32_t number : layout.placement.pages_of[r]) {
      const Bytes offset = number * page;
      const bool goes_on = !all.empty() && all.back().address + all.back().bytes == address &&
                           all.back().offset + all.back().bytes == offset;
      if (goes_on) {
        all.back().bytes += page;
      } else {
        all.push_back({address, offset, page});
      }
      address += page;
    }
  }
  return all;
}

}  // namespace stowage::simulator
