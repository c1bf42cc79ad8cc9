#include "profiler/torch/issue_costs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "executor/kept_tensor.h"
#include "executor/step_driver.h"
#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;
using executor::CopyTicket;

constexpr int kCalls = 200;
constexpr int kCopies = 32;
constexpr Bytes kCopyBytes = Bytes{64} << 10;

// The same hooks as a plan's for tensors that stay, without a plan.
class KeepingDriver final : public executor::StepDriver {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override {
    return std::make_unique<Hooks>();
  }
  void layer_event(executor::LayerEvent, std::string_view) override {}
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(executor::UpdateEvent, const at::Tensor&) override {}

 private:
  class Hooks final : public torch::autograd::SavedVariableHooks {
   public:
    void call_pack_hook(const at::Tensor& tensor) override { kept_ = executor::KeptTensor(tensor); }
    at::Tensor call_unpack_hook() override { return kept_.get(); }

   private:
    executor::KeptTensor kept_;
  };
};

// Forward and backward of a chain of products, each of which saves two tensors.
Nanoseconds chain_ns(const at::Tensor& leaf) {
  const auto begin = std::chrono::steady_clock::now();
  at::Tensor x = leaf;
  for (int i = 0; i < kCalls; ++i) x = at::mul(x, leaf);
  x.backward();
  leaf.mutable_grad().reset();
  return time_since(begin);
}

Nanoseconds hook_cost(executor::Device& device) {
  const at::Tensor leaf =
      at::ones({}, at::TensorOptions(device.torch_device())).set_requires_grad(true);
  const auto best = [&] {
    Nanoseconds least = chain_ns(leaf);
    for (int i = 0; i < 4; ++i) least = std::min(least, chain_ns(leaf));
    return least;
  };
  const Nanoseconds plain = best();
  KeepingDriver driver;
  const Nanoseconds hooked = [&] {
    const executor::InstalledDriver installed(driver);
    return best();
  }();
  device.synchronize();
  return std::max<Nanoseconds>(0, (hooked - plain) / (4 * kCalls));  // two packs, two unpacks
}

}  // namespace

void measure_issue_costs(executor::Device& device, std::byte* host, Bytes host_bytes,
                         Calibration& result) {
  device.synchronize();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) device.synchronize();
  result.sync_ns = time_since(begin) / kCalls;

  at::Tensor small = at::ones({256}, at::TensorOptions(device.torch_device()));
  for (int i = 0; i < kCalls; ++i) small.mul_(1);
  device.synchronize();
  begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) small.mul_(1);
  result.launch_ns = time_since(begin) / kCalls;

  const Bytes bytes = std::min(kCopyBytes, host_bytes);
  std::vector<at::Tensor> buffers;
  std::vector<CopyTicket> tickets;
  for (int round = 0; round < 2; ++round) {  // the first one fills pools of buffers and events
    buffers.clear();
    tickets.clear();
    device.synchronize();
    begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCopies; ++i) {
      buffers.push_back(device.allocate_buffer(bytes, executor::kOffPlanTag));
      tickets.push_back(
          device.copy_async(CopyLane::h2d, buffers.back().mutable_data_ptr(), host, bytes));
    }
    result.copy_issue_ns = time_since(begin) / kCopies;
    begin = std::chrono::steady_clock::now();
    for (const CopyTicket ticket : tickets) device.wait(ticket);
    result.wait_issue_ns = time_since(begin) / kCopies;
  }
  device.synchronize();
  result.hook_ns = hook_cost(device);
}

}  // namespace stowage::profiler
