// One replay of a plan with everything that the views show of it. Immutable and shared, like the
// trace: the one before stays as it is for comparison.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "gui/model/trace_data.h"
#include "report/simulation.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::gui {

// What is decided: rules as a person wrote them or a search made them, or, once a row was edited,
// one decision a row. `decisions`, when there, are what counts; `plan.saved` and `plan.parameters`
// are then out of date until plan_for_writing() makes them anew.
struct PlanState {
  simulator::Plan plan;  // target, budget, made_by; rules while `decisions` is null
  std::shared_ptr<const simulator::Decisions> decisions;
  std::string file;  // where it was read from, for messages; empty = from no file
  // The machine of which plan.lower_bound_step was proved; null: the recorded one.
  std::shared_ptr<const Calibration> proved_on;
};
using PlanStatePtr = std::shared_ptr<const PlanState>;

struct Simulated : report::Replayed {
  TracePtr trace;
  PlanStatePtr state;
  std::shared_ptr<const simulator::Decisions> decisions;  // the rules resolved, or the rows edited

  [[nodiscard]] const simulator::Plan& plan() const { return state->plan; }
  [[nodiscard]] Bytes peak() const;  // in the counter of plan.budget.on
};
using SimulatedPtr = std::shared_ptr<const Simulated>;

// What a job says that was asked to stop ahead of its end.
[[nodiscard]] Error interrupted();

// Resolves (when there are no decisions yet), lowers and replays. A percentage as the budget is
// given its bytes. Errors: those of resolve() and lower(), `interrupted` when stop was asked for.
// Cost: lower() and replay(): 5 ms on a step of 10,000 events.
[[nodiscard]] Result<SimulatedPtr> simulate(TracePtr trace, PlanStatePtr state,
                                            const std::stop_token& stop = {});

// No plan within the budgets of this one can be faster on this machine: what its search proved.
// Absent without a search, on another machine than the search's, and for a plan of another
// recording.
[[nodiscard]] std::optional<Nanoseconds> lower_bound_of(const Simulated& simulated);

// The plan of a replay as a file holds it: rules made of edited rows, `for` filled in for the
// trace, `predicted` of this replay; a lower bound and a gap only where the search's plan stands on
// the recorded machine. `plan_file` is where it is going to be written, so that
// `for.trace_file` is relative to it. Cost: that of to_rules().
[[nodiscard]] simulator::Plan plan_for_writing(const Simulated& simulated,
                                               const std::string& plan_file);

}  // namespace stowage::gui
