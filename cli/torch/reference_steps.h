// The steps that a plan is compared with: the same arithmetic, without the plan.
#pragma once

#include <optional>

#include "cli/torch/measured_run.h"
#include "cli/torch/plan_inputs.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::cli {

// The recorded step in the request's micro-batches, everything kept, against `limit` or, where
// there is none, what the device has: a prediction, nothing is run. Nothing: it fits, or nobody
// knows how much the device has. Errors: those of simulator::unroll().
[[nodiscard]] Result<std::optional<TooLarge>> too_large(const PlanInputs& inputs,
                                                        const Environment& device,
                                                        std::optional<Bytes> limit);

// Which parameters the plan has the host update, for MeasureOptions; empty on a CPU with one
// thread, where that is the same arithmetic.
[[nodiscard]] std::string updated_on_host(const PlanInputs& inputs);
// Whether a reference's times are those of the step without the plan. They are not where everything
// is offloaded or updates go through the host: then only the steps that are compared run.
[[nodiscard]] bool has_times(const MeasuredRun& reference);

// Runs the request's steps without the plan: everything kept, with no limit, or, where they are
// too_large(), everything offloaded and within the device's memory, or, where nobody knows how much
// that is, the limit; then only those that are dumped are run, since their times do not count. What
// the plan has the host update is updated there (executor::Optimizer::update_through_host). Errors:
// those of Session::create() and measure().
[[nodiscard]] Result<MeasuredRun> run_reference_steps(const PlanInputs& inputs,
                                                      std::optional<Bytes> limit,
                                                      MeasureOptions options);

}  // namespace stowage::cli
