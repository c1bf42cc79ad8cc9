#include "executor/planned_training.h"

#include <utility>

#include "simulator/lowering/lowering.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/step_index.h"

namespace stowage::executor {

PlannedTraining::PlannedTraining(Device& device, std::unique_ptr<PlannedStep> planned,
                                 simulator::ReplayResult predicted,
                                 std::function<void(const std::string& line)> log)
    : device_(device),
      planned_(std::move(planned)),
      predicted_(std::move(predicted)),
      log_(std::move(log)) {}

Result<std::unique_ptr<PlannedTraining>> PlannedTraining::create(
    Device& device, std::shared_ptr<const Trace> trace, const simulator::Plan& plan,
    std::vector<NamedTensor> parameters, PlannedTrainingOptions options) {
  const Result<simulator::Step> step = simulator::unroll(*trace, plan);
  if (!step) return step.error();
  options.step.structure = simulator::structure_of(*step);
  const simulator::StepIndex index(*step);
  Result<simulator::Lowering> lowered = simulator::lower(index, plan);
  if (!lowered) return lowered.error();
  simulator::ReplayResult predicted = simulator::replay(index, lowered->schedule);
  Result<std::unique_ptr<PlannedStep>> planned =
      PlannedStep::create(device, std::move(trace), std::move(lowered->schedule),
                          std::move(parameters), std::move(options.step));
  if (!planned) return planned.error();
  return std::unique_ptr<PlannedTraining>(new PlannedTraining(
      device, std::move(planned).value(), std::move(predicted), std::move(options.log)));
}

void PlannedTraining::say(const std::string& line) const {
  if (log_) log_(line);
}

void PlannedTraining::report(const StepReport& report) {
  const std::vector<std::string> warnings = device_.warnings();
  for (; said_warnings_ < warnings.size(); ++said_warnings_) say(warnings[said_warnings_]);
  if (!report.on_plan) {
    say("the step left the plan: " + report.first_difference + "; " +
        std::to_string(report.off_plan_packs) + " saved tensors left outside of it");
  }
}

Result<StepReport> PlannedTraining::run(const std::function<void()>& step) {
  try {
    begin();
    step();
  } catch (...) {
    abort();
    throw;
  }
  return end();
}

Result<StepReport> PlannedTraining::end() {
  Result<StepReport> ended = planned_->end_step();
  if (ended) report(*ended);
  return ended;
}

}  // namespace stowage::executor
