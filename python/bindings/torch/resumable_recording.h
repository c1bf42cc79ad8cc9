// profiler::record() driven by a loop that is the user's: each of its steps is one that the loop
// makes anyway. record() runs on a fiber and rests between steps.
//
//   recording.begin(tensors);  .. the step ..  if (recording.end()) trace = recording.take();
#pragma once

#include <stowage/device.h>
#include <stowage/record.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/torch/fiber.h"

namespace stowage::python {

class ResumableRecording {
 public:
  // `device` outlives it.
  ResumableRecording(executor::Device& device, Run run, profiler::RecordSettings settings);

  // The step begins, with these tensors. Throws what record() throws ahead of it.
  void begin(profiler::RegisteredTensors tensors);
  // The step has ended. True: that was the last one. Throws what record() throws behind it.
  bool end();
  // The step ended in an exception: the recording is over, nothing of it stays behind.
  void abort();
  // Behind the last one. Error: record()'s.
  [[nodiscard]] Result<Trace> take();

  [[nodiscard]] bool ended() const { return fiber_.ended(); }
  [[nodiscard]] const std::string& part() const { return part_; }  // of the recording, in words
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  // Since the last call.
  [[nodiscard]] std::vector<std::string> warnings();

 private:
  enum class At : std::uint8_t { before_step, in_step };
  void run(Fiber& self, Run run, profiler::RecordSettings settings);

  executor::Device& device_;
  profiler::RegisteredTensors tensors_;
  std::optional<Result<Trace>> result_;
  std::string part_;
  std::vector<std::string> warnings_;
  std::int64_t steps_ = 0;
  At at_ = At::before_step;
  bool has_begun_ = false;  // the step that record() waits for
  Fiber fiber_;             // last: what it runs uses the others
};

}  // namespace stowage::python
