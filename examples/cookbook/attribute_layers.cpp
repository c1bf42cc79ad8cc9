// Layer gradient x activation on a device too small for it: the attributions of twelve layers,
// first with all the memory they take, then in half of it. Beside it in Python:
// examples/python/cookbook/attribute_layers.py.
//
//   build/release/bin/examples/attribute_layers
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <stowage/attribute.h>  // Stowage
#include <stowage/device.h>     // Stowage
#include <stowage/layer.h>      // Stowage
#include <stowage/plan.h>       // Stowage
#include <stowage/record.h>     // Stowage
#include <stowage/train.h>      // Stowage

namespace {

struct Net : torch::nn::Module {
  std::vector<torch::nn::Linear> up;
  std::vector<torch::nn::Linear> down;

  Net() {
    for (int i = 0; i < 12; ++i) {
      up.push_back(register_module("up" + std::to_string(i), torch::nn::Linear(64, 256)));
      down.push_back(register_module("down" + std::to_string(i), torch::nn::Linear(256, 64)));
    }
    for (const torch::Tensor& parameter : parameters()) parameter.requires_grad_(false);
    eval();
  }

  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < up.size(); ++i) {
      x = stowage::layer(
          "layers." + std::to_string(i),
          [this, i](const auto& in) { return in[0] + down[i](torch::gelu(up[i](in[0]))); }, {x});
    }
    return x;
  }
};

template <class T>
T check(stowage::Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  std::exit(static_cast<int>(result.error().code));
}

// The bytes of all attributions of a step, one layer's behind another's.
std::string bytes_of(stowage::executor::LayerGradients& gradients) {
  std::string bytes;
  for (const auto& [name, tensor] : gradients.results()) {
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  return bytes;
}

}  // namespace

int main() {
  stowage::executor::Device& device = *check(stowage::executor::cpu_device());  // Stowage: first

  torch::manual_seed(1);
  auto net = std::make_shared<Net>();
  const torch::Tensor x = torch::empty({1024, 64});
  const auto load = [&](std::int64_t k) {
    torch::manual_seed(static_cast<std::uint64_t>(k));
    x.normal_();
  };
  // Class 3 of each sample is the score. What each layer returns, and its gradient, are multiplied
  // when backward has come to the first of them.
  stowage::executor::AttributedForward attributed(
      device, check(stowage::executor::parse_attribution("layers.*")));
  const auto step = [&] {
    const auto root = attributed.run([&]() -> stowage::executor::BackwardRoot {
      return {net->forward(x).select(1, 3).sum(), {}};
    });
    root.tensor.backward();
    attributed.gradients().end_backward();
  };
  const auto registered = [&] {
    stowage::profiler::RegisteredTensors tensors;
    for (const auto& parameter : net->named_parameters()) {
      tensors.parameters.push_back({parameter.key(), parameter.value()});
    }
    tensors.inputs = {{"x", x}};
    return tensors;
  };

  load(1);
  step();
  const std::string expected = bytes_of(attributed.gradients());

  // A plan for half of what it takes, and a device that has no more.
  auto trace = std::make_shared<const stowage::Trace>(
      check(stowage::profiler::record(device, {load, step, registered})));
  const stowage::simulator::StepIndex index(*trace);
  stowage::planner::PlanRequest request;
  request.budget = trace->peaks.requested.front() / 2;
  const auto outcome = check(stowage::planner::make_plan(index, request));
  device.set_memory_limit(request.budget.value());

  load(1);
  bool was_too_small = false;
  try {
    step();
  } catch (const c10::OutOfMemoryError&) {
    attributed.gradients().abort();
    was_too_small = true;
  }
  const auto planned = check(stowage::executor::PlannedTraining::create(device, trace, outcome.plan,
                                                                        registered().parameters));
  load(1);
  device.reset_peak();
  const auto report = check(planned->run(step));
  const bool is_same = bytes_of(attributed.gradients()) == expected;
  std::printf("%zu layers, %.1f MB without a plan, %.1f MB with it (predicted %.1f MB)\n",
              attributed.gradients().results().size(),
              static_cast<double>(outcome.resident.peak_requested) / 1e6,
              static_cast<double>(report.memory.peak_requested) / 1e6,
              static_cast<double>(planned->predicted().peak_requested) / 1e6);
  std::printf("without the plan it runs out of memory: %s; bitwise the same: %s\n",
              was_too_small ? "yes" : "no", is_same ? "yes" : "no");
  const bool is_as_predicted = report.memory.peak_requested == planned->predicted().peak_requested;
  return was_too_small && is_same && is_as_predicted ? 0 : 1;
}
