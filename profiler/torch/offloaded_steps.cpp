#include "profiler/torch/offloaded_steps.h"

#include <utility>

#include "executor/backward_thread.h"
#include "executor/saved_tensor_engine.h"
#include "profiler/torch/observed_step.h"

namespace stowage::profiler {

OffloadedSteps::OffloadedSteps(executor::Device& device, StepFunctions step,
                               std::unique_ptr<StatePager> pager)
    : device_(device), step_(std::move(step)), host_pool_(device), pager_(std::move(pager)) {
  step_.prepare = {};
}

Result<std::unique_ptr<OffloadedSteps>> OffloadedSteps::create(executor::Device& device,
                                                               StepFunctions step,
                                                               Bytes memory_limit) {
  executor::install_saved_tensor_engine();
  executor::take_backward_workspace(device.torch_device());
  PassOptions options;
  options.everything_offloaded = true;
  options.memory_limit = memory_limit;
  options.restores_state = false;
  options.trains = true;
  Result<std::unique_ptr<StatePager>> pager = make_pager(device, step, options);
  if (!pager) return pager.error();
  return std::unique_ptr<OffloadedSteps>(
      new OffloadedSteps(device, std::move(step), std::move(pager).value()));
}

Status OffloadedSteps::step() {
  const RecordOptions recording{
      .light = true, .host_pool = host_pool_, .again = {}, .pager = pager_.get()};
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
