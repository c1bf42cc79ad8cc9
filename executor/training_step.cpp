#include "executor/training_step.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "executor/attributed_forward.h"
#include "executor/clipping.h"
#include "executor/device/needed_wait.h"
#include "executor/loss_scale.h"
#include "executor/step_driver.h"
#include "executor/user_code.h"

namespace stowage::executor {

namespace {

constexpr Bytes kLossBytes = 8;  // the widest scalar

template <class T>
double read(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return static_cast<double>(value);
}

double scalar_at(const std::byte* data, at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return read<float>(data);
    case at::kDouble:
      return read<double>(data);
    case at::kBFloat16:
      return read<c10::BFloat16>(data);
    case at::kHalf:
      return read<c10::Half>(data);
    default:
      TORCH_CHECK(false, "a loss of dtype ", dtype);
  }
}

HostArena loss_arena(Device& device) {
  Result<HostArena> arena = device.host_arena(kLossBytes);
  TORCH_CHECK(arena.ok(), arena.error().text());
  return std::move(arena).value();
}

// Whatever happens in the first step, the history of the allocator does not go on behind it.
template <class Body>
auto in_setup(Device& device, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    device.end_setup();
    throw;
  }
}

const void* memory_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().data() : nullptr;
}

// A batch in a tensor of its own would be memory that no recording and no plan knows as an input.
void check_in_place(const std::vector<NamedTensor>& before, const std::vector<NamedTensor>& after,
                    const std::string& file) {
  const std::string model = file.empty() ? "the model" : file;
  TORCH_CHECK(before.size() == after.size(), model, ": its load_batch() changed how many inputs()",
              " there are, from ", before.size(), " to ", after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    TORCH_CHECK(memory_of(before[i].tensor) == memory_of(after[i].tensor), model,
                ": its load_batch() put a new tensor in the place of input '", before[i].name,
                "': write the batch into the tensor that is there, as with copy_()");
  }
}

}  // namespace

TrainingStep::TrainingStep(Device& device, std::unique_ptr<Model> model,
                           const TrainingOptions& options)
    : device_(device),
      model_(std::move(model)),
      parameters_(model_->parameters()),
      optimizer_(make_optimizer(options.optimizer, parameters_)),
      keeps_gradients_(options.optimizer.keeps_gradients),
      clip_(options.optimizer.clip),
      learning_rate_(learning_rate(options.optimizer)),
      schedule_(options.optimizer.schedule),
      share_(options.share),
      autocast_(options.autocast),
      seed_(options.seed),
      file_(options.file),
      loss_(loss_arena(device)) {
  if (options.grad_scaler) {
    TORCH_CHECK(optimizer_ != nullptr && !options.optimizer.in_backward,
                "stowage: a gradient scaler needs an optimizer that updates behind backward");
    grad_scaler_ = std::make_unique<GradScaler>(*options.grad_scaler, device.torch_device());
  }
  if (!options.attributed.empty()) {
    TORCH_CHECK(optimizer_ == nullptr, "stowage: an attribution step has no optimizer");
    for (const NamedTensor& each : parameters_) each.tensor.requires_grad_(false);
    attribution_ = std::make_unique<AttributedForward>(device, options.attributed);
  }
  if (options.optimizer.in_backward) {
    backward_updates_ = std::make_unique<BackwardUpdates>(*optimizer_, parameters_);
  }
  if (options.make_reduction) {
    TORCH_CHECK(attribution_ == nullptr && backward_updates_ == nullptr,
                "stowage: gradients are reduced behind backward, for updates that follow");
    reduction_ = options.make_reduction(parameters_);
  }
}

TrainingStep::~TrainingStep() = default;

void TrainingStep::enter(PhaseKind phase) const {
  if (phase_hook_) phase_hook_(phase);
}

void TrainingStep::prepare(std::int64_t index) {
  if (reduction_) reduction_->between_steps();
  const std::int64_t seed = seed_ + index * share_.ranks + share_.rank;
  // Held until then, so that no new tensor takes an old one's place in memory.
  const std::vector<NamedTensor> before = model_->inputs();
  model_->load_batch(seed);
  check_in_place(before, model_->inputs(), file_);
  at::Generator generator = at::globalContext().defaultGenerator(device_.torch_device());
  generator.set_current_seed(static_cast<std::uint64_t>(seed));
}

BackwardRoot TrainingStep::forward() const {
  const LossScale scale(grad_scaler_ ? grad_scaler_->scale() : at::Tensor());
  BackwardRoot root;
  {
    const AutocastScope scope(device_.torch_device().type(), autocast_);
    root =
        attribution_ ? attribution_->run([this] { return model_->forward(); }) : model_->forward();
  }
  if (grad_scaler_ && !scale.is_taken()) root.gradient = scale.of(root.tensor, root.gradient);
  return root;
}

void TrainingStep::backward(const BackwardRoot& root) const {
  const auto run = [&] {
    if (file_.empty()) return root.tensor.backward(root.gradient);
    run_user_code(file_ + ": its backward", [&] { root.tensor.backward(root.gradient); });
  };
  if (backward_updates_ != nullptr) return backward_updates_->during(run);
  if (attribution_ == nullptr) return run();
  try {
    run();
  } catch (...) {
    attribution_->gradients().abort();
    throw;
  }
  attribution_->gradients().end_backward();
}

void TrainingStep::zero_gradients() const {
  const at::NoGradGuard no_graph;
  for (const NamedTensor& parameter : parameters_) {
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    keeps_gradients_&& gradient.defined() ? static_cast<void>(gradient.zero_()) : gradient.reset();
  }
}

void TrainingStep::begin() {
  device_.begin_first_step();
  in_setup(device_, [&] {
    enter(PhaseKind::zero_grad);
    zero_gradients();
    if (backward_updates_ != nullptr) backward_updates_->begin_step();
    if (reduction_ != nullptr) reduction_->begin_step();
    // No update is under way: not one on the host either, which a plan's step waits for at its end.
    if (optimizer_) optimizer_->set_learning_rate(learning_rate_ * rate_factor(schedule_, made_));
  });
}

void TrainingStep::accumulate() {
  in_setup(device_, [&] { run_all(reduction_.get()); });
}

void TrainingStep::run_all(GradientReduction* reduction) {
  enter(PhaseKind::forward);
  LastBackward last(reduction);
  const BackwardRoot root = forward();
  enter(PhaseKind::backward);
  last.begin();
  backward(root);
  if (reduction != nullptr) reduction->end_backward();
  // Without a gradient PyTorch has asked for a scalar.
  const at::Tensor& loss = root.tensor;
  TORCH_CHECK(loss.numel() > 0 && static_cast<Bytes>(loss.itemsize()) <= kLossBytes,
              "a loss of dtype ", loss.scalar_type());
  loss_type_ = loss.scalar_type();
  // Fetched behind backward; the CPU goes on to launch the optimizer meanwhile.
  device_.copy_on_compute(loss_.data(), loss.const_data_ptr(), static_cast<Bytes>(loss.itemsize()));
}

void TrainingStep::update(Update update) {
  if (grad_scaler_ && grad_scaler_->unscale(parameters_)) update = Update::skipped;
  if (update == Update::taken) {
    if (clip_ > 0) clip_gradients(parameters_, clip_);
    optimizer_->step();
  } else if (StepDriver* const current = driver()) {
    current->skip_update();
  }
  if (grad_scaler_) grad_scaler_->update();
}

double TrainingStep::end(Update update) {
  in_setup(device_, [&] {
    if (backward_updates_ != nullptr) {
      TORCH_CHECK(update == Update::taken,
                  "stowage: updates in backward are done by now and cannot be skipped");
      return;
    }
    if (!optimizer_) return;
    enter(PhaseKind::optimizer);
    this->update(update);
  });
  if (needed(Wait::loss)) device_.synchronize();
  device_.end_setup();
  ++made_;
  return scalar_at(loss_.data(), loss_type_);
}

double TrainingStep::step(Update update) {
  begin();
  accumulate();
  return end(update);
}

double TrainingStep::run(std::int64_t index) {
  prepare(index);
  return step();
}

std::vector<NamedTensor> TrainingStep::gradients() const {
  std::vector<NamedTensor> result;
  for (const NamedTensor& parameter : parameters_) {
    if (parameter.tensor.grad().defined())
      result.push_back({parameter.name, parameter.tensor.grad()});
  }
  return result;
}

std::vector<at::Tensor> TrainingStep::older_tensors() const {
  std::vector<at::Tensor> tensors;
  for (const auto& all : {model_->inputs(), buffers(), optimizer_state()}) {
    for (const NamedTensor& each : all) tensors.push_back(each.tensor);
  }
  if (!keeps_gradients_) return tensors;
  for (const NamedTensor& each : gradients()) tensors.push_back(each.tensor);
  return tensors;
}

std::function<std::vector<NamedTensor>(const std::vector<NamedTensor>&)>
TrainingStep::state_maker() {
  return [this](const std::vector<NamedTensor>& parameters) {
    if (optimizer_) optimizer_->make_state(parameters);
    return optimizer_state();
  };
}

std::function<void(const at::Tensor&, const HostTensors&)> TrainingStep::host_updater() {
  if (!optimizer_ || grad_scaler_ || clip_ > 0) return {};
  return [this](const at::Tensor& parameter, const HostTensors& tensors) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].tensor.is_same(parameter)) return optimizer_->step_on_host(i, tensors);
    }
    TORCH_CHECK(false, "stowage: the host is to update what is no parameter of the optimizer");
  };
}

void TrainingStep::update_through_host(const std::vector<at::Tensor>& parameters) {
  if (optimizer_) optimizer_->update_through_host(parameters);
}

std::vector<NamedTensor> TrainingStep::buffers() const {
  std::vector<NamedTensor> all = model_->buffers();
  if (!grad_scaler_) return all;
  for (NamedTensor& each : grad_scaler_->state()) all.push_back(std::move(each));
  return all;
}

std::vector<NamedTensor> TrainingStep::attributions() const {
  return attribution_ ? attribution_->gradients().results() : std::vector<NamedTensor>{};
}

std::vector<NamedTensor> TrainingStep::written_optimizer_state() const {
  return optimizer_ ? optimizer_->written_state() : std::vector<NamedTensor>{};
}

std::vector<NamedTensor> TrainingStep::optimizer_state() const {
  return optimizer_ ? optimizer_->state() : std::vector<NamedTensor>{};
}

}  // namespace stowage::executor
