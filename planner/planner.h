// The planner: from a trace and a budget to a plan, with its lower bound and the gap.
// docs/planner.md describes the method and what it guarantees.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/allowed.h"
#include "planner/bounds.h"
#include "planner/policy.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/size_text.h"

namespace stowage::planner {

// How far the search is; `best_step_ns` is -1 until a plan within the budget is known.
struct Progress {
  std::int64_t evaluations = 0;
  std::int64_t max_evaluations = 0;
  Nanoseconds best_step_ns = -1;
};

struct PlanRequest {
  std::optional<Bytes> budget;  // absent = no limit; only with a policy other than `auto`
  std::string budget_text;      // as the user wrote it, for the plan file; may be empty
  simulator::PeakKind budget_on = simulator::PeakKind::active;  // of the memory of `placement`
  simulator::PlacementMode placement = simulator::PlacementMode::caching;
  std::optional<Bytes> host_budget;  // on ReplayResult::host_bytes
  std::string host_budget_text;
  ByteUnits units = ByteUnits::decimal;  // of sizes in notes
  std::string policy = "auto";           // a spec: "torchtune:stash=5"
  // A policy of the caller's own: `policy` is how it is called, and no name of policies().
  std::optional<PolicyRules> rules;
  Allowed allowed{};  // what `auto` may decide; floor and bound are of that alone
  // Rules of a plan whose decisions `auto` leaves as they are (planner/pins.h), also where they are
  // not `allowed`; floor and bound are of plans with these alone. Micro-batches among them say
  // which recording is planned.
  simulator::Plan pins{};
  std::int64_t seed = 1;  // recorded in the plan; the search draws nothing at random
  std::int64_t max_evaluations = 20'000;  // replays; the search ends by itself well before, usually
  std::stop_token stop;                   // a stopped search answers with the best plan so far
  std::function<void(const Progress&)> progress;  // called on the caller's thread, often
};

enum class PlanKind : std::uint8_t {
  planned,              // the plan keeps the budget (or there was none)
  fits_already,         // the step fits as it is; the plan moves nothing
  infeasible,           // proven: the floor is above the budget
  offload_cannot_help,  // proven: no decision lowers the peak, and it is above the budget
  policy_over_budget,   // the named policy's plan is filled in and does not keep a budget
  not_found,            // nothing within the budget was found, and nothing proves there is none
};
[[nodiscard]] const char* name_of(PlanKind value);

struct SearchStats {
  std::int64_t evaluations = 0;  // schedules lowered and estimated
  std::int64_t candidates = 0;   // storages that an offload could take away
  std::int64_t grid_points = 0;  // budgets searched for (docs/planner.md, "monotone")
  std::int64_t structures = 0;   // in which something runs again, searched in
  bool stopped = false;          // by the stop token
  bool exhausted = false;        // by max_evaluations
};

struct PlanOutcome {
  PlanKind kind = PlanKind::planned;
  simulator::Plan plan;               // complete; for infeasible kinds the tightest plan known
  simulator::ReplayResult resident;   // nothing moved
  simulator::ReplayResult predicted;  // of `plan`
  Nanoseconds lower_bound_step = 0;   // for every plan within the budgets that updates all on the
                                      // device or all that it can on the host
  std::int64_t gap_ppm = 0;           // (predicted step - bound) / bound
  // `floor.reached`: by the tightest plan known, in the budget's counter.
  MemoryFloor floor;
  // The smallest budget that the tightest plan known keeps; 0: none was looked for (a policy).
  Bytes kept_from = 0;
  Allowed allowed;  // what floor and bound are of: all, but with `auto` and less in the request
  std::int64_t pinned = 0;  // decisions of the request's pins that this plan has
  SearchStats search;
  std::vector<std::string> notes;  // the lowering's, and why the answer is what it is

  // Exit code 0 rather than 1.
  [[nodiscard]] bool feasible() const {
    return kind == PlanKind::planned || kind == PlanKind::fits_already;
  }
};

// Errors: usage (no budget with `auto`, a budget of 0 or less, a counter that the trace's device
// does not have, an unknown policy or option, pins beside a policy), bad_input (a trace that cannot
// be lowered; of pins, those of Pins::make()).
// Deterministic. The answer keeps the budget in the counters of replay(). Cost:
// `search.evaluations` times lower() and estimate(), a few replay() for each of
// `search.grid_points`, and the bounds.
[[nodiscard]] Result<PlanOutcome> make_plan(const simulator::StepIndex& index,
                                            const PlanRequest& request);

}  // namespace stowage::planner
