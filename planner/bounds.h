// Bounds that hold for every plan: the memory floor and the shortest step within a budget.
#pragma once

#include <string>
#include <vector>

#include "simulator/plan.h"
#include "simulator/trace_index.h"
#include "traces/units.h"

namespace stowage::planner {

// A storage (or the reload buffer that stands for it) that is alive at the floor's event.
struct FloorStorage {
  StorageId storage;
  Bytes bytes = 0;
  bool reloaded = false;   // the bytes are those of its reload buffers
  std::string made_by;     // name of the op that allocated it; empty when it is older than the step
  std::string layer;       // of the storage
  StorageClass storage_class = StorageClass::other;
};

// No allowed mix of decisions has a lower peak than `bytes`, and at `event` it is at least that.
struct MemoryFloor {
  Bytes bytes = 0;
  EventId event;
  OpId op;                 // innermost op at that event, -1 = none
  std::string op_name;     // its name, or empty
  std::string layer;       // its layer's path; of the event's own layer when there is no op
  std::vector<FloorStorage> storages;  // alive there, largest first
  bool reached = false;    // proven: the tight plan's peak is exactly `bytes` (requested bytes)
};

}  // namespace stowage::planner
