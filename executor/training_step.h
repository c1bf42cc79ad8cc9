// One training step of a built-in model, the same in every run: clean, recorded, reference,
// planned.
//
//   prepare(k)         the batch of seed + k goes into the input tensors (outside the step); with
//                      TrainingOptions::share, that of seed + k * ranks + rank
//   step()             zero_grad (set to none, or OptimizerSpec::keeps_gradients), forward,
//                      backward, optimizer
//   or divided:
//   begin()            zero_grad
//   accumulate()       forward and backward of the input tensors, once
//   end()              optimizer
//
// With TrainingOptions::grad_scaler the gradient that backward begins with is scaled, and end()
// divides gradients by the scale, skips the update where one is not finite, and sets the next
// scale. OptimizerSpec::clip is behind that.
//
// With OptimizerSpec::schedule step number k of this object, a skipped one too, has the rate of
// that; one that threw has not been made.
//
// With TrainingOptions::make_reduction the gradients are reduced once a step, in
// accumulate(), ahead of what end() does with them.
//
// With OptimizerSpec::in_backward each parameter is updated in the one accumulate(), and no
// gradient is left; what the host updates under a plan is done at the end of the plan's step, and
// its gradient goes there.
//
// A step leaves behind parameters, gradients and optimizer state and nothing else: every temporary,
// the root of backward included, is released inside. So from the third step on steps begin and end
// in the same state, and their peaks are equal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/attribution_spec.h"
#include "executor/autocast.h"
#include "executor/backward_updates.h"
#include "executor/device/device.h"
#include "executor/grad_scaler.h"
#include "executor/gradient_reduction.h"
#include "executor/model.h"
#include "executor/optimizer.h"
#include "traces/trace.h"

namespace stowage::executor {

class AttributedForward;

// Skipped: the gradients are of no use (an overflow), and the step's driver hears of that. Not
// where updates are in backward (c10::Error).
enum class Update : std::uint8_t { taken, skipped };

// Which of the batches of all ranks are this one's: step k has number k * ranks + rank.
struct BatchShare {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

struct TrainingOptions {
  OptimizerSpec optimizer{};
  std::int64_t seed = 0;  // of the batches and of dropout; the model has its own
  std::string file{};     // of a model of the user's: its backward throws under this name
  Autocast autocast = Autocast::none;  // of forward and its loss
  // Needs an optimizer whose updates are behind backward (c10::Error).
  std::optional<GradScalerSpec> grad_scaler{};
  // An attribution step (executor/attributed_forward.h): parameters need no gradient from then on.
  // Empty: a training step. Needs no optimizer (c10::Error where there is one).
  std::vector<AttributedLayers> attributed{};
  // Of the model's parameters, made once; empty: gradients stay as backward leaves them. Needs
  // updates behind backward, and a training step (c10::Error).
  std::function<std::unique_ptr<GradientReduction>(const std::vector<NamedTensor>& parameters)>
      make_reduction{};
  BatchShare share{};
};

class TrainingStep {
 public:
  // Called where a phase of step() begins: zero_grad, forward, backward, optimizer.
  using PhaseHook = std::function<void(PhaseKind)>;

  // The device must outlive the step.
  TrainingStep(Device& device, std::unique_ptr<Model> model, const TrainingOptions& options);
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  // Also seeds PyTorch's default generator, so that dropout depends on the step's number alone.
  void prepare(std::int64_t index);
  // The device's first step is the first of these, and with it ends its setup.
  // Returns the loss, exactly; where backward begins at a tensor with a gradient of its own, that
  // tensor's first element. Throws what PyTorch throws, and what the model's own code throws in
  // backward, which with options.file is c10::Error that names the file; then the next step is
  // clean again, since it begins with zero_grad (with OptimizerSpec::in_backward some parameters
  // are updated by then).
  double step(Update update = Update::taken);
  double run(std::int64_t index);
  // The parts of a step. What happens between them (another load_batch() of the model, gradients
  // scaled or clipped) is the caller's and belongs to the step. end() returns the last part's loss.
  // After an exception in one of them the step begins anew with begin().
  void begin();
  void accumulate();
  double end(Update update = Update::taken);

  void set_phase_hook(PhaseHook hook) { phase_hook_ = std::move(hook); }

  [[nodiscard]] Model& model() { return *model_; }
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // Named as their parameters; those that have one.
  [[nodiscard]] std::vector<NamedTensor> gradients() const;
  // Of an attribution step, on the host (LayerGradients::results).
  [[nodiscard]] std::vector<NamedTensor> attributions() const;
  [[nodiscard]] std::vector<NamedTensor> optimizer_state() const;
  // Of it what updates have written (Optimizer::written_state).
  [[nodiscard]] std::vector<NamedTensor> written_optimizer_state() const;
  // The model's, and what the gradient scaler keeps.
  [[nodiscard]] std::vector<NamedTensor> buffers() const;
  // For PlannedStepOptions::optimizer_state: gives all of it, that of these parameters made where
  // no step has yet (Optimizer::make_state). The step outlives it.
  [[nodiscard]] std::function<std::vector<NamedTensor>(const std::vector<NamedTensor>& parameters)>
  state_maker();
  // For PlannedStepOptions::update_on_host; empty where updates begin behind the last gradient
  // only, since that decides about them (clipping, a gradient scaler). The step outlives it.
  [[nodiscard]] std::function<void(const at::Tensor& parameter, const HostTensors& tensors)>
  host_updater();
  // The optimizer's (Optimizer::update_through_host).
  void update_through_host(const std::vector<at::Tensor>& parameters);
  // What else lives from step to step: inputs, buffers, state of the optimizer, gradients that are
  // kept.
  [[nodiscard]] std::vector<at::Tensor> older_tensors() const;

 private:
  void enter(PhaseKind phase) const;
  void zero_gradients() const;
  [[nodiscard]] BackwardRoot forward() const;
  void update(Update update);
  void backward(const BackwardRoot& root) const;
  void run_all(GradientReduction* reduction);

  Device& device_;
  std::unique_ptr<Model> model_;
  std::vector<NamedTensor> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradScaler> grad_scaler_;         // null: none
  std::unique_ptr<AttributedForward> attribution_;  // null: it trains
  bool keeps_gradients_ = false;
  double clip_ = 0;           // 0: none
  double learning_rate_ = 0;  // that the schedule's factors are of
  RateSchedule schedule_;
  std::int64_t made_ = 0;                              // steps
  std::unique_ptr<BackwardUpdates> backward_updates_;  // null: updates are behind backward
  std::unique_ptr<GradientReduction> reduction_;       // null: this is the only rank
  BatchShare share_;
  Autocast autocast_;
  std::int64_t seed_ = 0;
  std::string file_;
  PhaseHook phase_hook_;
  HostArena loss_;  // where the loss comes to; pinned once
  at::ScalarType loss_type_ = at::kFloat;
};

}  // namespace stowage::executor
