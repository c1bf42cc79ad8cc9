#include "executor/training_step.h"

#include <ATen/Context.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace stowage::executor {

namespace {

// The bytes of one scalar on the host, without a tensor.
class HostScalar {
 public:
  void fetch(Device& device, const at::Tensor& scalar) {
    dtype_ = scalar.scalar_type();
    TORCH_CHECK(scalar.numel() == 1 && scalar.itemsize() <= bytes_.size(),
                "the loss must be a scalar");
    device.copy_on_compute(bytes_.data(), scalar.const_data_ptr(),
                           static_cast<Bytes>(scalar.itemsize()));
  }

  [[nodiscard]] double value() const {
    switch (dtype_) {
      case at::kFloat:
        return read<float>();
      case at::kDouble:
        return read<double>();
      case at::kBFloat16:
        return static_cast<float>(read<c10::BFloat16>());
      default:
        TORCH_CHECK(false, "a loss of dtype ", dtype_);
    }
  }

 private:
  template <class T>
  [[nodiscard]] T read() const {
    T value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }

  at::ScalarType dtype_ = at::kFloat;
  alignas(8) std::array<std::byte, 8> bytes_{};
};

}  // namespace

TrainingStep::TrainingStep(Device& device, std::unique_ptr<Model> model,
                           const TrainingOptions& options)
    : device_(device),
      model_(std::move(model)),
      parameters_(model_->parameters()),
      optimizer_(make_optimizer(options.optimizer, options.learning_rate, parameters_)),
      seed_(options.seed) {}

void TrainingStep::enter(PhaseKind phase) const {
  if (phase_hook_) phase_hook_(phase);
}

void TrainingStep::prepare(std::int64_t index) {
  const std::int64_t seed = seed_ + index;
  model_->load_batch(seed);
  at::Generator generator = at::globalContext().defaultGenerator(device_.torch_device());
  generator.set_current_seed(static_cast<std::uint64_t>(seed));
}

double TrainingStep::step() {
  enter(PhaseKind::zero_grad);
  for (const NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad().reset();

  enter(PhaseKind::forward);
  HostScalar loss_value;
  {
    at::Tensor loss = model_->forward();
    enter(PhaseKind::backward);
    loss.backward();
    loss_value.fetch(device_, loss);
  }
  if (optimizer_) {
    enter(PhaseKind::optimizer);
    optimizer_->step();
  }
  device_.synchronize();
  return loss_value.value();
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

std::vector<NamedTensor> TrainingStep::optimizer_state() const {
  return optimizer_ ? optimizer_->state() : std::vector<NamedTensor>{};
}

}  // namespace stowage::executor
