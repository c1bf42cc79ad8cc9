// What the programs of this folder share: a training loop on the CPU device, recorded, run as it is
// and under a plan, and what is said of both.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <stowage/device.h>
#include <stowage/engine.h>
#include <stowage/plan.h>
#include <stowage/record.h>
#include <stowage/result.h>
#include <stowage/train.h>

namespace cookbook {

template <class T>
T check(stowage::Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  std::exit(static_cast<int>(result.error().code));
}

// The CPU device, ahead of the first tensor. On one thread: some backward ops allocate on several
// at once otherwise, in no order that could be recorded.
inline stowage::executor::Device& cpu() {
  at::set_num_threads(1);
  return *check(stowage::executor::cpu_device());
}

// An optimizer of one's own that tells a plan of each update, as parameters that stream need it.
inline void sgd(const std::vector<torch::Tensor>& parameters, double rate) {
  using stowage::executor::UpdateEvent;
  const torch::NoGradGuard no_grad;
  stowage::executor::StepDriver* const driver = stowage::executor::driver();
  for (torch::Tensor parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    if (driver != nullptr) driver->parameter_update(UpdateEvent::begin, parameter);
    parameter.add_(parameter.grad(), -rate);
    parameter.mutable_grad() = torch::Tensor();
    if (driver != nullptr) driver->parameter_update(UpdateEvent::end, parameter);
  }
}

struct Program {
  std::shared_ptr<torch::nn::Module> model;
  std::function<void(std::int64_t)> load;  // batch number k, ahead of its step
  std::function<float()> step;             // its loss
  std::vector<stowage::executor::NamedTensor> inputs{};

  [[nodiscard]] std::vector<stowage::executor::NamedTensor> parameters() const {
    std::vector<stowage::executor::NamedTensor> named;
    for (const auto& each : model->named_parameters()) named.push_back({each.key(), each.value()});
    return named;
  }
  // The weights are what they are at first.
  void reset() const {
    const torch::NoGradGuard no_grad;
    torch::manual_seed(1);
    for (const auto& each : parameters()) {
      torch::Tensor(each.tensor).normal_(0, 0.05);
      torch::Tensor(each.tensor).mutable_grad() = torch::Tensor();
    }
  }
};

using Parts = std::vector<stowage::simulator::Structure::Parts>;

inline std::shared_ptr<const stowage::Trace> record(stowage::executor::Device& device,
                                                    const Program& program,
                                                    const Parts& parts = {}) {
  stowage::profiler::RecordSettings settings;
  settings.micro_batches = parts;
  stowage::profiler::StepFunctions functions;
  functions.prepare = program.load;
  functions.step = [&] { program.step(); };
  functions.registered = [&] {
    stowage::profiler::RegisteredTensors tensors;
    tensors.parameters = program.parameters();
    tensors.inputs = program.inputs;
    return tensors;
  };
  auto trace = check(stowage::profiler::record(device, functions, {}, settings));
  return std::make_shared<const stowage::Trace>(std::move(trace));
}

inline std::unique_ptr<stowage::executor::PlannedTraining> apply(
    stowage::executor::Device& device, const Program& program,
    std::shared_ptr<const stowage::Trace> trace, const stowage::simulator::Plan& plan) {
  return check(stowage::executor::PlannedTraining::create(device, std::move(trace), plan,
                                                          program.parameters()));
}

struct Ran {
  std::vector<float> losses;
  std::vector<float> weights;  // behind the last step; no tensors, which would count
  stowage::Bytes peak = 0;     // of the last step
  double ms = 0;               // the shortest step
};

// Some steps from the first weights on. `training`: the plan, null: none.
inline Ran run(stowage::executor::Device& device, const Program& program,
               stowage::executor::PlannedTraining* training) {
  using Clock = std::chrono::steady_clock;
  constexpr int kSteps = 6;
  Ran ran;
  for (int k = 0; k < kSteps; ++k) {
    program.load(k);
    device.reset_peak();
    const Clock::time_point begin = Clock::now();
    const auto step = [&] { ran.losses.push_back(program.step()); };
    if (training == nullptr) {
      step();
      ran.peak = device.memory().peak_requested;
    } else {
      ran.peak = check(training->run(step)).memory.peak_requested;
    }
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    if (k == 0 || took.count() < ran.ms) ran.ms = took.count();
  }
  if (training != nullptr) training->planned_step().materialise();
  for (const auto& each : program.parameters()) {
    const auto* const values = each.tensor.const_data_ptr<float>();
    ran.weights.insert(ran.weights.end(), values, values + each.tensor.numel());
  }
  return ran;
}

// Prints both; the program's exit code.
inline int tell(const Ran& plain, const Ran& planned, stowage::Bytes predicted) {
  const bool same = plain.losses == planned.losses && plain.weights == planned.weights;
  const auto mb = [](stowage::Bytes bytes) { return static_cast<double>(bytes) / 1e6; };
  std::printf("peak %.2f MB without the plan, %.2f MB under it; as predicted: %s\n", mb(plain.peak),
              mb(planned.peak), planned.peak == predicted ? "yes" : "no");
  std::printf("step %.1f ms, under the plan %.1f ms\n", plain.ms, planned.ms);
  std::printf("losses and weights bitwise the same: %s\n", same ? "yes" : "no");
  return same && planned.peak == predicted && planned.peak < plain.peak ? 0 : 1;
}

}  // namespace cookbook
