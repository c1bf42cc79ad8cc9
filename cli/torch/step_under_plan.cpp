#include "cli/torch/step_under_plan.h"

#include <c10/util/Exception.h>

#include <utility>

#include "cli/plan_file.h"
#include "cli/torch/plan_inputs.h"
#include "executor/chain_call.h"
#include "executor/planned_step.h"
#include "executor/segment_call.h"
#include "simulator/lowering/lowering.h"
#include "simulator/step/step_index.h"
#include "simulator/step/unroll.h"

namespace stowage::cli {

Result<StepUnderPlan> StepUnderPlan::load(const PlanFiles& files,
                                          const std::optional<std::string>& model,
                                          const RunFlags& flags, CommandFiles& command) {
  // Else load_plan_inputs() would record the plain step first.
  if (!files.trace) {
    const Result<simulator::Plan> plan = load_plan(files.plan);
    if (!plan) return plan.error();
    const Result<report::PlansTrace> trace = plans_trace(*plan, files.plan, command);
    if (!trace) return trace.error();
    if (!trace->is_there) {
      return Error{ErrorCode::usage, "the recording that the plan was made from is not there",
                   files.plan, "/for", "give it with --trace FILE"};
    }
  }
  Result<PlanInputs> inputs = load_plan_inputs(files.plan, files.trace, model,
                                               simulator::PlacementMode::caching, flags, command);
  if (!inputs) return inputs.error();
  StepUnderPlan step;
  step.request_ = std::move(inputs->request);
  step.trace_ = std::move(inputs->trace);
  step.structure_ = std::move(inputs->structure);
  step.request_.micro_batches = step.structure_.parts;
  step.warnings_ = std::move(inputs->warnings);
  step.moves_ = !inputs->schedule.instructions.empty();
  const Result<simulator::Step> unrolled = simulator::unroll(*step.trace_, step.structure_);
  if (!unrolled) return unrolled.error();
  step.again_ = {executor::segment_specs(unrolled->trace(), unrolled->segments()),
                 executor::chain_specs(unrolled->trace(), unrolled->segments())};
  const simulator::StepIndex index(*unrolled);
  simulator::Decisions keep;
  keep.saved.resize(unrolled->trace().saved.size());
  Result<simulator::Lowering> lowering = simulator::lower(index, keep);
  if (!lowering) return lowering.error();
  step.nothing_moves_ = std::move(lowering->schedule);
  return step;
}

Result<profiler::StepFunctions> StepUnderPlan::functions(Session& session) const {
  executor::PlannedStepOptions options;
  options.structure = structure_;
  Result<std::unique_ptr<executor::PlannedStep>> made = executor::PlannedStep::create(
      session.device(), trace_, nothing_moves_, session.step().parameters(), options);
  if (!made) return made.error();
  const std::shared_ptr<executor::PlannedStep> plan = std::move(made).value();
  profiler::StepFunctions functions = session.functions();
  functions.step = [plan, step = &session.step()] {
    plan->begin_step();
    try {
      step->step();
    } catch (...) {
      plan->abort_step();
      throw;
    }
    const Result<executor::StepReport> report = plan->end_step();
    TORCH_CHECK(report.ok(), report.ok() ? std::string() : report.error().text());
  };
  return functions;
}

}  // namespace stowage::cli
