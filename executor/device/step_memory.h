// StepMemory: a device's memory for the allocations of one planned step, mapped ahead of the first.
// The device's allocator hands it out while a period runs (simulator/placement/hand_out_server.h):
// each allocation has its address, the same in every period; what was not foreseen, and whatever
// comes while somebody keeps a tensor longer than planned, is the allocator's own.
//
// When the object is gone nothing is handed out any more. The memory is given back once no tensor
// lies in it.
#pragma once

#include "simulator/placement/hand_out_server.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::executor {

class StepMemory {
 public:
  virtual ~StepMemory() = default;

  // As those of HandOutServer. Thread-safe.
  virtual void begin_period() = 0;
  virtual void reach(EventId event) = 0;
  virtual void end_period() = 0;
  [[nodiscard]] virtual simulator::HandOutReport report() const = 0;
  // Taken from the system or the driver.
  [[nodiscard]] virtual Bytes bytes() const = 0;
};

// The memory that allocations of the calling thread come from: that of a guard that lives on it,
// else what the function says that was given last. Null: none.
[[nodiscard]] StepMemory* current_memory();
using CurrentMemory = StepMemory* (*)();
void set_current_memory(CurrentMemory current);

// While it lives, allocations of this thread come from `memory`, unless that is null.
class StepMemoryGuard {
 public:
  explicit StepMemoryGuard(StepMemory* memory);
  ~StepMemoryGuard();
  StepMemoryGuard(const StepMemoryGuard&) = delete;
  StepMemoryGuard& operator=(const StepMemoryGuard&) = delete;

 private:
  StepMemory* previous_;
};

}  // namespace stowage::executor
