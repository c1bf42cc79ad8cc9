// Two sessions of one model in one state: the planned one, which was recorded, and its twin, in
// which nothing moves. What one does the other must do, bit for bit. With a driver in between a
// step can be watched and made to fail at any event, in both alike.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/step/step_index.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/recorded_model.h"

namespace stowage::testing {

// Passes everything on to `next` (null = nobody), and calls `at` ahead of each layer event and
// parameter update, with "forward_begin layers.0", "update_end", ..
class WatchedDriver final : public executor::StepDriver {
 public:
  using Watch = std::function<void(const std::string& event)>;

  WatchedDriver(executor::StepDriver* next, Watch at)
      : next_(next), at_(std::move(at)), installed_(*this) {}
  WatchedDriver(const WatchedDriver&) = delete;
  WatchedDriver& operator=(const WatchedDriver&) = delete;

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override;
  void layer_event(executor::LayerEvent event, std::string_view path) override;
  void backward_begin() override;
  void backward_end() override;
  void parameter_update(executor::UpdateEvent event, const at::Tensor& parameter) override;
  executor::StepMemory* memory() override { return next_ == nullptr ? nullptr : next_->memory(); }
  void skip_update() override {
    if (next_ != nullptr) next_->skip_update();
  }
  bool updates_elsewhere(const at::Tensor& parameter) override {
    return next_ != nullptr && next_->updates_elsewhere(parameter);
  }

 private:
  executor::StepDriver* next_;
  Watch at_;
  executor::InstalledDriver installed_;
};

[[nodiscard]] Bits bits_of(executor::Device& device,
                           const std::vector<executor::NamedTensor>& tensors);

// Every tensor of ours is the twin's, bit by bit; fails the test with the names of those that are
// not.
void expect_same_bits(executor::Device& device, const std::vector<executor::NamedTensor>& ours,
                      const std::vector<executor::NamedTensor>& twins);

class TwinSessions {
 public:
  TwinSessions(const std::string& spec, std::int64_t batch, const std::string& optimizer,
               const Precision& precision = {}, const cli::Parts& parts = {});

  [[nodiscard]] const Trace& trace() const { return *recorded_.trace; }
  [[nodiscard]] std::shared_ptr<const Trace> shared_trace() const { return recorded_.trace; }
  [[nodiscard]] const simulator::StepIndex& index() const { return index_; }
  [[nodiscard]] executor::Device& device() { return recorded_.session->device(); }
  [[nodiscard]] executor::TrainingStep& planned() { return recorded_.session->step(); }
  [[nodiscard]] executor::TrainingStep& twin() { return twin_->step(); }

  // Every parameter streams, a layer's in one shard. Throws with the error's text.
  [[nodiscard]] simulator::Schedule stream(simulator::ParameterPlan::Stream stream,
                                           std::optional<std::int32_t> prefetch) const;
  [[nodiscard]] std::unique_ptr<executor::PlannedStep> plan(
      const simulator::Schedule& schedule, executor::OffPlan off_plan = executor::OffPlan::refuse,
      const simulator::Structure& structure = {});

  struct Result {
    double loss = 0;
    Bytes peak = 0;
    executor::StepReport report;
    std::string error;  // of an exception in the step, which then was aborted
  };
  // Batch number k. `watch` may throw.
  Result run_planned(executor::PlannedStep& plan, std::int64_t k,
                     const WatchedDriver::Watch& watch = {});
  Result run_twin(std::int64_t k, const WatchedDriver::Watch& watch = {});

  // Parameters, and gradients where `gradients`.
  void expect_same_state(executor::PlannedStep& plan, bool gradients = true);
  // Both run batch k; losses, gradients and parameters are the same.
  Result expect_same_step(executor::PlannedStep& plan, std::int64_t k);

 private:
  std::unique_ptr<cli::Session> twin_;
  RecordedModel recorded_;
  simulator::StepIndex index_;
};

}  // namespace stowage::testing
