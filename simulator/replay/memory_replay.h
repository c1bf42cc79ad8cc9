// The memory half of replay(): a function of program order alone.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

struct MemoryPeaks {
  Bytes requested = 0;
  // Every storage and buffer rounded up to the allocator's granule: a lower bound of what the
  // allocator hands out, since it may leave a small rest in a block. = requested on a CPU.
  Bytes rounded = 0;
  EventId event;  // first event at which `requested` is reached
};

// `requested`, if given, gets the bytes after each event, or the most during its instructions.
// Starts from the changes by event that the index holds, moves those of storages that leave, adds
// the buffers of loaded stays, and sums up once. Cost: O(events +
// instructions + storages).
[[nodiscard]] MemoryPeaks replay_memory(const StepIndex& index, const Schedule& schedule,
                                        std::vector<Bytes>* requested = nullptr);

}  // namespace stowage::simulator
