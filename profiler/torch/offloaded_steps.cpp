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

// Of a step whose model state stays on the device.
struct ModelBytes {
  Bytes state = 0;    // parameters and optimizer state
  Bytes unmade = 0;   // of it: optimizer state that no step has made yet
  Bytes in_step = 0;  // what a step makes of the parameters' size: gradients, copies of autocast
};

ModelBytes model_bytes(const executor::Device& device, const StepFunctions& step) {
  const RegisteredTensors known = step.registered();
  const Bytes parameters = bytes_of(executor::state_storages(device, known.parameters));
  ModelBytes bytes;
  bytes.in_step =
      (step.gradients_last ? parameters : 0) + (step.casts_parameters ? parameters / 2 : 0);
  const auto pieces = executor::state_storages(device, known.optimizer_state);
  bytes.state = parameters + bytes_of(pieces);
  for (const executor::StateStorage& each : pieces) {
    if (executor::is_unmade(each.tensors.front().tensor)) bytes.unmade += each.bytes();
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
  const ModelBytes model = model_bytes(device, step);
  const bool state_stays = model.state + model.in_step <= without_ops(options.memory_limit);
  Result<std::unique_ptr<StatePager>> pager =
      state_stays ? std::unique_ptr<StatePager>() : make_pager(device, step, options);
  if (!pager) return pager.error();
  return std::unique_ptr<OffloadedSteps>(
      new OffloadedSteps(device, std::move(step), std::move(pager).value(), options.memory_limit));
}

Status OffloadedSteps::step() {
  // What this step is going to make comes beside what is kept until then.
  Bytes to_come = state_share(limit_);
  if (!pager_) {
    const ModelBytes model = model_bytes(device_, step_);
    to_come = model.unmade + model.in_step;
  }
  const RecordOptions recording{.light = true,
                                .host_pool = host_pool_,
                                .again = {},
                                .pager = pager_.get(),
                                .kept_below = without_ops(limit_) - to_come};
  const Result<RawPass> pass =
      observe(device_, step_, RecordMode::offload_all, /*index=*/0, recording);
  return pass ? Status(Unit{}) : Status(pass.error());
}

std::vector<executor::NamedTensor> OffloadedSteps::values(
    const std::vector<executor::NamedTensor>& tensors) {
  if (pager_ == nullptr) {
    std::vector<executor::NamedTensor> made = tensors;
    std::erase_if(made, [](const auto& each) { return executor::is_unmade(each.tensor); });
    return made;
  }
  pager_->rest();
  device_.synchronize();
  return pager_->values(tensors);
}

}  // namespace stowage::profiler
