#include "profiler/torch/offloaded_steps.h"

#include <algorithm>
#include <utility>

#include "executor/backward_thread.h"
#include "executor/saved_tensor_engine.h"
#include "profiler/torch/observed_step.h"

namespace stowage::profiler {

namespace {

// What ops have at a time does not grow with the device.
constexpr Bytes kMostForOps = 24'000'000'000;

// Saved tensors stay while no more than that is on the device.
Bytes kept_below(Bytes limit) {
  return limit - state_share(limit) - std::min(limit / 2, kMostForOps);
}

}  // namespace

OffloadedSteps::OffloadedSteps(executor::Device& device, StepFunctions step,
                               std::unique_ptr<StatePager> pager, Bytes kept_below)
    : device_(device),
      step_(std::move(step)),
      host_pool_(device),
      pager_(std::move(pager)),
      kept_below_(kept_below) {
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
  Result<std::unique_ptr<StatePager>> pager = make_pager(device, step, options);
  if (!pager) return pager.error();
  return std::unique_ptr<OffloadedSteps>(new OffloadedSteps(
      device, std::move(step), std::move(pager).value(), kept_below(options.memory_limit)));
}

Status OffloadedSteps::step() {
  const RecordOptions recording{.light = true,
                                .host_pool = host_pool_,
                                .again = {},
                                .pager = pager_.get(),
                                .kept_below = kept_below_};
  const Result<RawPass> pass =
      observe(device_, step_, RecordMode::offload_all, /*index=*/0, recording);
  return pass ? Status(Unit{}) : Status(pass.error());
}

std::vector<executor::NamedTensor> OffloadedSteps::values(
    const std::vector<executor::NamedTensor>& tensors) {
  if (pager_ == nullptr) return tensors;
  pager_->rest();
  device_.synchronize();
  return pager_->values(tensors);
}

}  // namespace stowage::profiler
