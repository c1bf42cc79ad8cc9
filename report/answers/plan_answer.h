// The planner's answer in words and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "report/answers/text_style.h"
#include "report/simulation.h"
#include "report/storage_uses.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/size_text.h"

namespace stowage::report {

struct PlanAnswer {
  planner::PlanOutcome outcome;
  simulator::PeakKind budget_on = simulator::PeakKind::active;
  std::string written_to = {};  // file of the plan, or empty
  // --fit: the size of the device. The budget is on reserved bytes then.
  std::optional<Bytes> fit = {};
  // In which the text says bytes: those of the budget, as it was written.
  ByteUnits units = ByteUnits::decimal;
  // What was set for it in place of the recorded link ("link.h2d_gbps=25").
  std::vector<std::string> settings = {};
  // When it was given, ISO 8601; empty: not said. In the answer, and not in the plan: the same
  // question has the same plan, byte by byte.
  std::string given_at = {};
  // Of the step as it was recorded, at its peak.
  BytesByUse peak_use = {};
  // Of the plan on the recording.
  std::optional<Simulation> simulation = {};
};

// make_plan(), and the plan on the recording. Errors: those of both.
[[nodiscard]] Result<PlanAnswer> answer_plan(const simulator::StepIndex& index,
                                             const planner::PlanRequest& request);

// Why there is no plan, as the one line on stderr: with the floor in bytes, the op and the layer
// that make it. Only for an outcome that is not feasible.
[[nodiscard]] Error why_infeasible(const PlanAnswer& answer);

// `index`: of the step that the plan makes of the recording (Simulation::index). The whole text:
// verdict, memory curve, figures, with `explain` also what recompute buys in each layer, the rules
// and what the search did; for an infeasible answer the storages that make the floor.
[[nodiscard]] std::string plan_text(const simulator::StepIndex& index, const PlanAnswer& answer,
                                    bool explain, const TextStyle& style);

// "stowage-plan-answer/1"; with an "error" member when there is no plan. One object and a newline.
[[nodiscard]] std::string plan_answer_json(const simulator::StepIndex& index,
                                           const PlanAnswer& answer);

}  // namespace stowage::report
