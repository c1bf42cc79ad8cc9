#include "profiler/torch/step_hooks.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "executor/planned_step.h"
#include "profiler/torch/stopwatch.h"
#include "simulator/lowering/lowering.h"

namespace stowage::profiler {

namespace {

using Clock = std::chrono::steady_clock;

Nanoseconds time_of(executor::Device& device, const std::function<void()>& step) {
  device.synchronize();
  const Clock::time_point begin = Clock::now();
  step();
  device.synchronize();
  return time_since(begin);
}

}  // namespace

Nanoseconds StepHooks::hook_ns() const {
  return hooks == 0 ? 0 : std::max<Nanoseconds>(0, planned_ns - plain_ns) / hooks;
}

Result<StepHooks> measure_step_hooks(executor::Device& device, const StepFunctions& step,
                                     std::shared_ptr<const Trace> trace, std::int64_t first_index,
                                     const StepBudget& pairs) {
  STOWAGE_ASSERT(pairs.least > 0);
  StepHooks result;
  result.hooks = static_cast<std::int64_t>(trace->saved.size() + trace->unpacks.size());
  const simulator::StepIndex index(*trace);
  simulator::Decisions nothing_moves;
  nothing_moves.saved.resize(trace->saved.size());
  Result<simulator::Lowering> lowering = simulator::lower(index, nothing_moves);
  if (!lowering) return lowering.error();
  auto plan =
      executor::PlannedStep::create(device, std::move(trace), std::move(lowering->schedule), {});
  if (!plan) return plan.error();
  std::vector<Nanoseconds> plain;
  std::vector<Nanoseconds> planned;
  Nanoseconds spent = 0;
  for (std::int64_t i = 0; pairs.wants_more(i, spent); ++i) {
    if (step.prepare) step.prepare(first_index + 2 * i);
    plain.push_back(time_of(device, step.step));
    if (step.prepare) step.prepare(first_index + 2 * i + 1);
    (*plan)->begin_step();  // ended by the plan's destructor when the step throws
    planned.push_back(time_of(device, step.step));
    if (const auto report = (*plan)->end_step(); !report) return report.error();
    spent += plain.back() + planned.back();
  }
  result.plain_ns = median(std::move(plain));
  result.planned_ns = median(std::move(planned));
  return result;
}

bool launches_far_ahead(const Trace& trace) {
  const auto launches = static_cast<std::int64_t>(trace.gpu.size());
  const auto hooks = static_cast<std::int64_t>(trace.saved.size() + trace.unpacks.size());
  const Wide work =
      Wide{launches} * trace.calibration.launch_ns + Wide{hooks} * trace.calibration.hook_ns;
  return launches > 0 && 20 * work <= trace.overhead.clean.step_ns;
}

Status calibrate_hooks(executor::Device& device, const StepFunctions& step,
                       std::int64_t first_index, Trace& trace) {
  if (!device.torch_device().is_cuda() || trace.overhead.clean.step_ns == 0 ||
      launches_far_ahead(trace)) {
    return Unit{};
  }
  Result<StepHooks> hooks = measure_step_hooks(device, step, std::make_shared<const Trace>(trace),
                                               first_index, StepBudget::up_to(7, 2, 8'000'000'000));
  if (!hooks) return hooks.error();
  trace.calibration.hook_ns = std::max(trace.calibration.hook_ns, hooks->hook_ns());
  return Unit{};
}

}  // namespace stowage::profiler
