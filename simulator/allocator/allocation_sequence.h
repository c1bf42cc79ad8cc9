// What a planned step asks of the device's allocator, in the order in which the executor does: one
// flat list for a period, and what links a period to the one before.
//
// Order: at an event its own allocation or free, the instructions there as listed (a load
// allocates, an eviction may free), then what goes in the gap behind it. Frees of one gap commute:
// merging is the same in any order.
//
// A step is periodic. A storage that exists at its begin and is freed within it (the gradients that
// zero_grad drops) is what the step before made and left behind: such pairs are found by size, the
// k-th of a size in order of rows with the k-th in order of allocation. In the very first period
// they are not there yet. What cannot be paired, or is left behind by a plan in another form, is
// kept periodic all the same: made ahead of the period that frees it, freed at the end of the
// period that made it. What is at home between steps and made anew in each (a gradient, with its
// Tenant::previous) is no such pair: nothing is there to free, and the period gives up what it
// made.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

struct AllocationSequence {
  // Storages by row, then stays by row (those that are made are no buffers: 0 bytes).
  using Slot = std::int32_t;
  std::vector<Bytes> bytes;  // by slot

  struct Step {
    EventId event;  // at which, or ahead of which in the gap
    Slot slot = 0;
    bool free = false;
    bool by_plan = false;  // an instruction's, behind the event's own
  };
  std::vector<Step> period;

  struct Pair {
    Slot old;   // freed in the period
    Slot made;  // left behind by it
  };
  std::vector<Pair> carried;
  std::vector<Slot> made_before;   // allocated ahead of every period, freed in it
  std::vector<Slot> freed_behind;  // left behind by a period, freed at its end
  std::vector<Slot> lasting;       // there all the time
  // What has a home of its own and is older than the step, in order: its storages go ahead of the
  // first period; and the stays
  // that are allocated then, behind that, which end in each period and begin again in it.
  std::vector<Slot> adopted;
  std::vector<Slot> wrapping;
  // A row of a trace's setup that never happens: what has a home of its own and would be made in
  // the first step (an optimizer's state) is there by then, with no memory on the device but in its
  // stays. Cost: O(what has a home of its own).
  [[nodiscard]] bool is_born_at_home(const Setup& setup, std::size_t row) const;
  bool is_paired = true;  // made_before and freed_behind come from the plan alone
};

// Cost: O(events + instructions + storages log storages).
[[nodiscard]] AllocationSequence allocation_sequence(const StepIndex& index,
                                                     const Schedule& schedule);

}  // namespace stowage::simulator
