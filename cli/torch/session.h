// Session: the device, the model and the training step of one process, made from a request.
#pragma once

#include <memory>
#include <optional>

#include "cli/torch/run_request.h"
#include "executor/device/device.h"
#include "executor/division.h"
#include "executor/training_step.h"
#include "profiler/torch/passes.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {
class RankGroup;
}

namespace stowage::cli {

class Session {
 public:
  // Installs the device's allocator (once a process), sets the run options, builds the model. Its
  // steps run on this thread, in the request's micro-batches. Of a rank: joins the group, whose
  // ranks have to run the same step.
  [[nodiscard]] static Result<std::unique_ptr<Session>> create(const RunRequest& request);

  [[nodiscard]] executor::Device& device() { return *device_; }
  [[nodiscard]] executor::TrainingStep& step() { return *step_; }
  // The step as the recorder runs it.
  [[nodiscard]] profiler::StepFunctions functions();
  // Of the last step that functions() ran.
  [[nodiscard]] double last_loss() const { return last_loss_; }
  // Of --distributed: how many ranks there are; the collectives that this one has begun so far,
  // none without that option.
  [[nodiscard]] std::int64_t ranks() const;
  [[nodiscard]] std::optional<std::int64_t> collectives() const;
  // What a trace says about this run and this machine.
  [[nodiscard]] Run run() const;
  [[nodiscard]] Environment environment() const;
  [[nodiscard]] const std::vector<simulator::Structure::Parts>& micro_batches() const {
    return request_.micro_batches;
  }
  // Device bytes that may be live at once; more is out of memory.
  void set_memory_limit(Bytes limit);

 private:
  Session(RunRequest request, executor::Device& device, const executor::RankGroup* group,
          std::unique_ptr<executor::TrainingStep> step);

  RunRequest request_;                // its ranks outlive the step
  const executor::RankGroup* group_;  // null: it trains alone
  executor::Device* device_;
  std::unique_ptr<executor::TrainingStep> step_;
  double last_loss_ = 0;
  executor::Division division_;
  executor::InstalledDriver divided_;  // behind those of recordings and plans
};

// Calls `body` and turns PyTorch's exceptions into errors: out of memory is "condition not met",
// the rest is bad input, with the first line of the message.
template <class Body>
[[nodiscard]] auto guarded(Body&& body) -> decltype(body());

// For guarded(): the error of the exception that is being handled.
[[nodiscard]] Error current_exception_error();

template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return current_exception_error();
  }
}

}  // namespace stowage::cli
