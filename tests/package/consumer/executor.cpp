// A program with folders named as Stowage's, which trains under a plan.
#include <ATen/Functions.h>
#include <stowage/attribute.h>
#include <stowage/device.h>
#include <stowage/engine.h>
#include <stowage/layer.h>
#include <stowage/model.h>
#include <stowage/plan.h>
#include <stowage/plugin.h>
#include <stowage/record.h>
#include <stowage/report.h>
#include <stowage/result.h>
#include <stowage/sequential.h>
#include <stowage/simulate.h>
#include <stowage/trace.h>
#include <stowage/train.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "executor/device/cpu_device.h"
#include "simulator/step/step_index.h"
#include "traces/trace.h"

namespace {

using Tensors = std::vector<at::Tensor>;

template <class T>
T check(stowage::Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  std::exit(1);
}

struct Loop {
  at::Tensor x = at::rand({64, 32});
  at::Tensor w = at::rand({32, 32}).requires_grad_();

  void step() {
    w.mutable_grad().reset();
    Tensors pair = {x, x};
    for (int i = 0; i < 6; ++i) {
      pair = stowage::layer(
          "layers." + std::to_string(i),
          [this](const Tensors& in) -> Tensors {
            return {at::tanh(at::mm(in[0], w)), at::sigmoid(in[1])};
          },
          std::move(pair));
    }
    at::Tensor loss = pair[0].mean() + pair[1].mean();
    pair.clear();
    loss.backward();
  }
};

}  // namespace

int main() {
  stowage::executor::Device& device = *check(stowage::executor::cpu_device());
  const consumer::Trace own;
  std::printf("Stowage %s beside %s, %d\n", stowage::kVersion.data(), consumer::cpu_device(),
              own.lines + consumer::StepIndex().first);
  stowage::executor::install_saved_tensor_engine();
  Loop loop;
  const std::vector<stowage::executor::NamedTensor> parameters = {{"w", loop.w}};
  const stowage::profiler::StepFunctions functions{
      [](std::int64_t) {}, [&] { loop.step(); },
      [&] {
        return stowage::profiler::RegisteredTensors{parameters, {}, {{"x", loop.x}}, {}};
      }};
  const auto trace =
      std::make_shared<const stowage::Trace>(check(stowage::profiler::record(device, functions)));
  const stowage::simulator::StepIndex index(*trace);
  stowage::planner::PlanRequest request;
  request.policy = "save_on_cpu";
  const auto outcome = check(stowage::planner::make_plan(index, request));
  const auto found =
      check(stowage::report::inspect(*trace, stowage::report::GroupBy::layer, "peak"));
  if (stowage::report::inspect_text(*trace, found, 10, "layer", {}).empty()) return 1;
  const auto training =
      check(stowage::executor::PlannedTraining::create(device, trace, outcome.plan, parameters));
  device.reset_peak();
  const auto report = check(training->run([&] { loop.step(); }));
  return report.memory.peak_requested == training->predicted().peak_requested ? 0 : 1;
}
