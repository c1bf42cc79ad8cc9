// OutsideMemory: what lies where the device's own allocator has put it, all the time, beside a
// planned step's memory. A program hands a planned step its parameters, buffers and optimizer
// state; everything else that is older than that (another model, a batch that every step uses, a
// copy of the weights, DDP's buckets) stays where it is, and counts against a budget all the same.
// Not so libraries' workspaces of after the beginning of listening (rows of the setup behind
// Quality::adopted_allocations; of class workspace, or of no storage): they move.
#pragma once

#include <vector>

#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::simulator {

struct OutsideBytes {
  Bytes active = 0;  // of blocks, as the caching allocator rounds them
  // Of segments, as the caching allocator would have them with nothing else in them; the real ones
  // may be more.
  Bytes reserved = 0;
};

struct OutsideMemory {
  std::vector<bool> is_storage;  // by storage
  std::vector<bool> is_setup;    // by row of the setup
  OutsideBytes bytes;
};

// Cost: O(setup + uses).
[[nodiscard]] OutsideMemory outside_memory(const Trace& trace);

}  // namespace stowage::simulator
