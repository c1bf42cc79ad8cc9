#include "executor/held.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "executor/kept_tensor.h"
#include "executor/step_driver.h"
#include "traces/result.h"

namespace stowage {

struct Held::State {
  std::unique_ptr<torch::autograd::SavedVariableHooks> hooks;  // null: `kept` is it
  executor::KeptTensor kept;
};

Held hold(const at::Tensor& tensor) {
  const at::NoGradGuard no_graph;
  Held held;
  held.state_ = std::make_shared<Held::State>();
  executor::StepDriver* const driver = executor::driver();
  if (driver != nullptr) held.state_->hooks = driver->make_hooks();
  if (held.state_->hooks != nullptr) {
    held.state_->hooks->call_pack_hook(tensor);
  } else {
    held.state_->kept = executor::KeptTensor(tensor);
  }
  return held;
}

at::Tensor Held::get() const {
  STOWAGE_ASSERT(state_ != nullptr);
  const at::NoGradGuard no_graph;
  return state_->hooks != nullptr ? state_->hooks->call_unpack_hook() : state_->kept.get();
}

}  // namespace stowage
