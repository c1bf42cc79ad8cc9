// One replay of a plan with everything that the views show of it. Immutable and shared, like the
// trace: the one before stays as it is for comparison.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "gui/model/plan_decisions.h"
#include "gui/model/step_rows.h"
#include "gui/model/trace_data.h"
#include "report/simulation.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::gui {

// What is decided: rules as a person wrote them or a search made them, or, once a row was edited,
// one decision a row. `decisions`, when there, are what counts; `plan.saved`, `plan.parameters`,
// `plan.optimizer` and `plan.recompute` are then out of date until plan_for_writing() makes them
// anew.
struct PlanState {
  simulator::Plan plan;  // target, budget, made_by; rules while `decisions` is null
  std::shared_ptr<const PlanDecisions> decisions;
  std::string file;  // where it was read from, for messages; empty = from no file
  // The machine of which plan.lower_bound_step was proved; null: the recorded one.
  std::shared_ptr<const Calibration> proved_on;
};
using PlanStatePtr = std::shared_ptr<const PlanState>;

struct Simulated : report::Replayed {
  TracePtr trace;
  PlanStatePtr state;
  std::shared_ptr<const PlanDecisions> decisions;  // the rules resolved, or the rows edited
  // Of the step that the plan makes of the recording: rows of the schedule and of the replay are
  // that step's. It refers to `trace`.
  std::shared_ptr<const simulator::StepIndex> index;
  StepRowsPtr rows;  // null: nothing runs again, and the step's rows are the recording's
  // In planned memory and by the caching allocator, whatever the plan's placement; none where the
  // trace does not say what the process held.
  std::optional<report::Reserved> reserved;

  [[nodiscard]] const Trace& step_trace() const { return index->trace(); }
  [[nodiscard]] const simulator::Plan& plan() const { return state->plan; }
  [[nodiscard]] Bytes peak() const;  // in the counter of plan.budget.on
  // With nothing moved, in the plan's memory.
  [[nodiscard]] const simulator::ReplayResult& resident() const {
    return trace->resident(plan().placement);
  }
};
using SimulatedPtr = std::shared_ptr<const Simulated>;

// Of a recording that was opened without a plan: nothing moves, in the memory and the counter that
// a budget is about where nobody says another.
[[nodiscard]] PlanState fresh_state(const Trace& trace);

// What a job says that was asked to stop ahead of its end.
[[nodiscard]] Error interrupted();

// Resolves (when there are no decisions yet), unrolls, lowers and replays. A percentage as the
// budget is given its bytes. `before`: a replay whose step is taken when the same runs again in it.
// Errors: those of unroll(), resolve() and lower(), `interrupted` when stop was asked for.
// Cost: lower() and replay(): 5 ms on a step of 10,000 events; unroll() where another step is made.
[[nodiscard]] Result<SimulatedPtr> simulate(TracePtr trace, PlanStatePtr state,
                                            const std::stop_token& stop = {},
                                            const SimulatedPtr& before = nullptr);

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
