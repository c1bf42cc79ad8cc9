// A training loop of one's own, first without Stowage's help, then under a plan for 60 % of its
// memory. The lines that Stowage adds are marked; the rest is an ordinary LibTorch program.
//
//   build/release/bin/examples/train_with_plan
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <stowage/device.h>  // Stowage
#include <stowage/layer.h>   // Stowage
#include <stowage/plan.h>    // Stowage
#include <stowage/record.h>  // Stowage
#include <stowage/train.h>   // Stowage

namespace {

struct Net : torch::nn::Module {
  std::vector<torch::nn::Linear> up;
  std::vector<torch::nn::Linear> down;

  Net() {
    for (int i = 0; i < 6; ++i) {
      up.push_back(register_module("up" + std::to_string(i), torch::nn::Linear(128, 512)));
      down.push_back(register_module("down" + std::to_string(i), torch::nn::Linear(512, 128)));
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < up.size(); ++i) {
      // Stowage: a layer is a named callable; without the wrapper this line is the lambda's body.
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

}  // namespace

int main() {
  stowage::executor::Device& device = *check(stowage::executor::cpu_device());  // Stowage: first

  torch::manual_seed(1);
  auto net = std::make_shared<Net>();
  torch::optim::AdamW optimizer(net->parameters());
  const torch::Tensor x = torch::empty({256, 128});
  const torch::Tensor y = torch::empty({256, 128});
  double loss = 0;

  const auto load = [&](std::int64_t k) {
    torch::manual_seed(static_cast<std::uint64_t>(k));
    x.normal_();
    y.normal_();
  };
  const auto step = [&] {
    optimizer.zero_grad();
    torch::Tensor result = torch::mse_loss(net->forward(x), y);
    result.backward();
    optimizer.step();
    loss = *static_cast<const float*>(result.const_data_ptr());
  };
  const auto registered = [&] {
    stowage::profiler::RegisteredTensors tensors;
    for (const auto& parameter : net->named_parameters()) {
      tensors.parameters.push_back({parameter.key(), parameter.value()});
    }
    tensors.inputs = {{"x", x}, {"y", y}};
    return tensors;
  };

  // Stowage: record the step, plan for 60 % of its peak, apply the plan.
  stowage::profiler::RecordSettings settings;
  settings.passes.progress = [](std::string_view part) {
    std::fprintf(stderr, "recording: %.*s\n", static_cast<int>(part.size()), part.data());
  };
  auto trace = std::make_shared<const stowage::Trace>(
      check(stowage::profiler::record(device, {load, step, registered}, {}, settings)));
  const stowage::simulator::StepIndex index(*trace);
  stowage::planner::PlanRequest request;
  request.budget = trace->peaks.requested.front() * 60 / 100;
  const auto outcome = check(stowage::planner::make_plan(index, request));
  const auto training = check(stowage::executor::PlannedTraining::create(
      device, trace, outcome.plan, registered().parameters));

  stowage::Bytes peak = 0;
  for (std::int64_t k = 0; k < 5; ++k) {
    load(k);
    device.reset_peak();
    const auto report = check(training->run(step));  // Stowage: instead of step()
    peak = report.memory.peak_requested;
    std::printf("step %ld  loss %.6f  peak %.1f MB\n", static_cast<long>(k), loss,
                static_cast<double>(peak) / 1e6);
  }
  std::printf("without the plan %.1f MB, predicted with it %.1f MB\n",
              static_cast<double>(outcome.resident.peak_requested) / 1e6,
              static_cast<double>(training->predicted().peak_requested) / 1e6);
  return peak == training->predicted().peak_requested ? 0 : 1;
}
