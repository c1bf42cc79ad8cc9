#include "simulator/placement/planned_memory.h"

#include "simulator/allocator/allocation_sequence.h"

namespace stowage::simulator {

PlannedMemory planned_memory(const StepIndex& index, const Schedule& schedule) {
  PlannedMemory memory;
  memory.live = live_ranges(allocation_sequence(index, schedule), index.trace());
  memory.placement = place(memory.live);
  return memory;
}

PlannedBytes planned_bytes(const StepIndex& index, const Schedule& schedule) {
  return placed_size(live_ranges(allocation_sequence(index, schedule), index.trace()));
}

}  // namespace stowage::simulator
