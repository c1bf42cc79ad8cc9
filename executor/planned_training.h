// PlannedTraining: a user's own training loop under a plan. Together with profiler::record() and
// planner::make_plan() this is the embedding API (docs/library.md, examples/train_with_plan.cpp):
//
//   auto trace = std::make_shared<const Trace>(*profiler::record(device, {load, step,
//   registered})); const simulator::StepIndex index(*trace); const auto outcome =
//   *planner::make_plan(index, {.budget = 8'000'000'000, .budget_on = usual_counter(*trace, mode),
//   .placement = mode}); auto training =
//   *executor::PlannedTraining::create(device, trace, outcome.plan, parameters); for (..) {
//   load(k); training->run(step); }
//
// Several models of a process have one each, and run in turn, or one within another's step. What
// PlannedStep says of parameters that stream holds here: between steps they are away unless
// materialise() was called.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/planned_step.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

struct PlannedTrainingOptions {
  PlannedStepOptions step{};
  // Gets one line whenever there is something that the user should know: a device's warning, a
  // step that left the plan and where. May be empty. Called between steps, by the calling thread.
  std::function<void(const std::string& line)> log{};
};

class PlannedTraining {
 public:
  // Lowers the plan onto the trace that it was made from, and applies it. `parameters` as they were
  // recorded, in that order. Errors: of lower() and of PlannedStep::create(). `device` outlives
  // the object.
  [[nodiscard]] static Result<std::unique_ptr<PlannedTraining>> create(
      Device& device, std::shared_ptr<const Trace> trace, const simulator::Plan& plan,
      std::vector<NamedTensor> parameters, PlannedTrainingOptions options = {});

  // One step: zero_grad, forward, backward and optimizer, as recorded. Exceptions of the step pass
  // through, and so does c10::Error when it is not the recorded one; either way everything of the
  // plan is cleaned up first, parameters are complete, and the next step may follow. Error: the
  // step ended before its schedule; its results are right.
  [[nodiscard]] Result<StepReport> run(const std::function<void()>& step);
  // Its parts, for a loop that is no callable: begin(), the step, and end() or, behind an
  // exception, abort().
  void begin() { planned_->begin_step(); }
  [[nodiscard]] Result<StepReport> end();
  void abort() { planned_->abort_step(); }

  // What the simulator says of the plan on the trace's machine.
  [[nodiscard]] const simulator::ReplayResult& predicted() const { return predicted_; }
  // For materialise(), values() and what else concerns parameters between steps.
  [[nodiscard]] PlannedStep& planned_step() { return *planned_; }

 private:
  PlannedTraining(Device& device, std::unique_ptr<PlannedStep> planned,
                  simulator::ReplayResult predicted,
                  std::function<void(const std::string& line)> log);
  void say(const std::string& line) const;
  void report(const StepReport& report);

  Device& device_;
  std::unique_ptr<PlannedStep> planned_;
  simulator::ReplayResult predicted_;
  std::function<void(const std::string& line)> log_;
  std::size_t said_warnings_ = 0;  // of the device's
};

}  // namespace stowage::executor
