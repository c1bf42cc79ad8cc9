// StepMemory: a device's memory for what is on it in one planned step. What is there all the time
// moves in, then everything is mapped, ahead of the first step; from then on the device's allocator
// hands it out while a period runs (simulator/placement/hand_out_server.h): each allocation has its
// address, the same in every period but for what takes turns; what was not foreseen, and whatever
// comes while somebody keeps a tensor longer than planned, is the allocator's own.
//
// Between periods, and once a step has left its plan, most of it is nobody's. Where the device's
// allocator has no memory for somebody else then (an evaluation, parameters that come back, another
// plan), the pages that nothing lies in are lent: given back until the next period begins. So a
// plan may fill the device.
//
// When it is closed, or gone, nothing is handed out any more. Pages that no tensor lies in are
// given back then, the others once none does.
#pragma once

#include <c10/core/Allocator.h>

#include <optional>

#include "simulator/placement/hand_out_server.h"
#include "traces/ids.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

class StepMemory {
 public:
  virtual ~StepMemory() = default;

  // Memory for what is there all the time, mapped now: an allocation of the device like others.
  // Null: there is none of that size. Errors (condition): no page is left for it, nor lent by other
  // plans; (environment): the system or the driver refuses it. Cost: a mapping; where others lend
  // for it, a wait for the device.
  [[nodiscard]] virtual Result<c10::DataPtr> take_lasting(Bytes bytes) = 0;
  // Everything else; once, ahead of the first period. Errors and cost likewise, 0.1 to 0.6 s for
  // 64 GB of a GPU.
  [[nodiscard]] virtual Status map_rest() = 0;

  // As those of HandOutServer, on the calling thread's stream. Thread-safe.
  virtual void begin_setup() = 0;
  virtual void end_setup() = 0;
  // Pages that were lent since the last period come back first; whether any did. Errors
  // (condition): they have no room, since what was made meanwhile is still there; (environment):
  // the system or the driver refuses them, or this process is a fork of that which has the memory.
  // No period has begun then, and the next call tries again.
  // Cost: a wait for the device where pages were lent or another stream used what was freed; and
  // then that of map_rest().
  [[nodiscard]] virtual Result<bool> begin_period() = 0;
  virtual void reach(EventId event) = 0;
  virtual void end_period() = 0;
  // Between periods. What lies there stays. Waits for the device. Again: what nothing lies in by
  // then goes back, too.
  virtual void close() = 0;
  [[nodiscard]] virtual simulator::HandOutReport report() const = 0;
  // Taken from the system or the driver once all is mapped; while pages are lent, without those.
  [[nodiscard]] virtual Bytes bytes() const = 0;
  // How often pages were lent.
  [[nodiscard]] virtual std::int64_t lent() const = 0;
  // Of addresses: what all pages are mapped at.
  [[nodiscard]] virtual Bytes mapped_bytes() const = 0;
  // An address of it.
  [[nodiscard]] virtual bool has(const void* data) const = 0;
};

// The memory that allocations of the calling thread come from: that of the last guard that lives on
// it, else what the function says that was given last. Null: none.
[[nodiscard]] StepMemory* current_memory();
using CurrentMemory = StepMemory* (*)();
void set_current_memory(CurrentMemory current);

// While it lives, allocations of this thread come from `memory`; null: from none, whatever goes on
// around it.
class StepMemoryGuard {
 public:
  explicit StepMemoryGuard(StepMemory* memory);
  ~StepMemoryGuard();
  StepMemoryGuard(const StepMemoryGuard&) = delete;
  StepMemoryGuard& operator=(const StepMemoryGuard&) = delete;

 private:
  std::optional<StepMemory*> previous_;
};

}  // namespace stowage::executor
