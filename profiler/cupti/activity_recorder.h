// ActivityRecorder: CUPTI's activity records of this process, from start() to stop(). One a
// process, better made before CUDA starts, and never taken down (steps are slower after a CUPTI
// that was, so nothing is timed afterwards in that process).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "profiler/assembly/raw_activity.h"
#include "traces/result.h"

namespace stowage::profiler {

class ActivityRecorder {
 public:
  // Subscribes, asks for buffers in host memory (the device's peak stays the step's), checks the
  // version and that CUPTI's clock is CLOCK_REALTIME. `cuda_has_started`: there is a context
  // already; then every API call makes a record from start() to stop(), about three times as many,
  // and no earlier or later (decision 0008). Errors (environment): another tool subscribed (named),
  // KINETO_USE_DAEMON is set, no driver, a CUPTI that is not version 13.
  [[nodiscard]] static Result<std::unique_ptr<ActivityRecorder>> create(bool cuda_has_started);
  virtual ~ActivityRecorder() = default;
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;

  // From now on kernels, copies, memsets, the API calls that launch them, and waits are recorded.
  [[nodiscard]] virtual Status start() = 0;
  // Precondition: the device is idle (the caller synchronised it); what still ran would be lost.
  [[nodiscard]] virtual Result<RawActivities> stop() = 0;

  // The calling thread's launches belong to `id` until the pop. Nests. About 0.1 us each; nothing
  // while not recording.
  virtual void push(std::int64_t id) = 0;
  virtual void pop() = 0;

 protected:
  ActivityRecorder() = default;
};

// "13.0.1 (nvidia/cu13/lib/libcupti.so.13)" of the CUPTI that this process loaded: the end of its
// path.
[[nodiscard]] std::string cupti_library();

}  // namespace stowage::profiler
