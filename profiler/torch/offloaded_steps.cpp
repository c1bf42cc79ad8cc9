#include "profiler/torch/offloaded_steps.h"

#include <algorithm>
#include <utility>

#include "executor/backward_thread.h"
#include "executor/saved_tensor_engine.h"
#include "executor/unmade_state.h"
#include "profiler/torch/observed_step.h"

namespace stowage::profiler {

namespace {

// What ops have at a time does not grow with the device.
constexpr Bytes kMostForOps = 24'000'000'000;

Bytes without_ops(Bytes limit) {
  return limit - std::min(limit / 2, kMostForOps);
}

Bytes bytes_of(const std::vector<executor::StateStorage>& storages) {
  Bytes bytes = 0;
  for (const executor::StateStorage& each : storages) bytes += each.bytes();
  return bytes;
}

// Parameters, optimizer state, and gradients where they are there all at once.
Bytes model_state(const executor::Device& device, const StepFunctions& step) {
  const RegisteredTensors known = step.registered();
  const Bytes parameters = bytes_of(executor::state_storages(device, known.parameters));
  return parameters + (step.keeps_gradients ? parameters : 0) +
         bytes_of(executor::state_storages(device, known.optimizer_state));
}

// Of optimizer state that no step has made yet.
Bytes unmade_state(const executor::Device& device, const StepFunctions& step) {
  Bytes bytes = 0;
  for (const auto& each : executor::state_storages(device, step.registered().optimizer_state)) {
    if (executor::is_unmade(each.tensors.front().tensor)) bytes += each.bytes();
  }
  return bytes;
}

}  // namespace

OffloadedSteps::OffloadedSteps(executor::Device& device, StepFunctions step,
                               std::unique_ptr<StatePager> pager, Bytes memory_limit)
    : device_(device),
      step_(std::move(step)),
      host_pool_(device),
      pager_(std::move(pager)),
      limit_(memory_limit) {
  step_.prepare = {};
}

Result<std::unique_ptr<OffloadedSteps>> OffloadedSteps::create(executor::Device& device,
                                                               StepFunctions step,
                                                               Bytes memory_limit) {
  executor::install_saved_tensor_engine();
  executor::take_backward_workspace(device.torch_device());
  PassOptions options;
  options.everything_offloaded = true;
  options.memory_limit = memory_limit > 0 ? memory_limit : device_memory(device);
  options.restores_state = false;
  options.trains = true;
  if (step.make_state) step.make_state();
  const bool state_stays = model_state(device, step) <= without_ops(options.memory_limit);
  Result<std::unique_ptr<StatePager>> pager =
      state_stays ? std::unique_ptr<StatePager>() : make_pager(device, step, options);
  if (!pager) return pager.error();
  return std::unique_ptr<OffloadedSteps>(
      new OffloadedSteps(device, std::move(step), std::move(pager).value(), options.memory_limit));
}

Status OffloadedSteps::step() {
  // State that this step is going to make comes beside what is kept until then.
  const Bytes for_state = pager_ ? state_share(limit_) : unmade_state(device_, step_);
  const RecordOptions recording{.light = true,
                                .host_pool = host_pool_,
                                .again = {},
                                .pager = pager_.get(),
                                .kept_below = without_ops(limit_) - for_state};
  const Result<RawPass> pass =
      observe(device_, step_, RecordMode::offload_all, /*index=*/0, recording);
  return pass ? Status(Unit{}) : Status(pass.error());
}

std::vector<executor::NamedTensor> OffloadedSteps::values(
    const std::vector<executor::NamedTensor>& tensors) {
  if (pager_ == nullptr) {
    std::vector<executor::NamedTensor> made = tensors;
    std::erase_if(made, [](const auto& each) {
      return each.tensor.defined() && executor::is_unmade(each.tensor);
    });
    return made;
  }
  pager_->rest();
  device_.synchronize();
  return pager_->values(tensors);
}

}  // namespace stowage::profiler
