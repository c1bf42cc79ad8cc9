// One replay with everything that is said about it: what `simulate`, `export` and the desktop
// program start from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/moment.h"
#include "report/stalls.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/planned_memory.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::report {

// A schedule with what it comes to.
struct Replayed {
  simulator::Schedule schedule;
  simulator::ReplayResult result;
  simulator::ReplayDetail detail;
  std::vector<std::string> notes;  // "site: text" of the lowering, then the replay's remarks
  bool device_kept = true;         // within budget.device, in the counter of budget.on
  bool host_kept = true;           // within budget.host
};

// Replays what lower() made. Precondition: the budget is resolved (bytes, no percentage left).
// Cost: that of replay(); the desktop program does it for each edit.
[[nodiscard]] Replayed replayed(const simulator::StepIndex& index, simulator::Lowering lowering,
                                const simulator::PlanBudget& budget);

// What a step reserves: in planned memory, and of the driver's by the caching allocator.
struct Reserved {
  simulator::PlannedBytes planned;
  Bytes caching = 0;
};
// Precondition: the trace has a setup. `result`: that of replay() of the schedule. Cost: that of
// replay() in the memory that is not the schedule's.
[[nodiscard]] Reserved reserved_bytes(const simulator::StepIndex& index,
                                      const simulator::Schedule& schedule,
                                      const simulator::ReplayResult& result);

// `notes` begin with those of rules, "/saved/N: text".
struct Simulation : Replayed {
  // Of the step that the plan makes of the recording, which must outlive it; the rows of the
  // schedule and of the replay are that step's.
  std::shared_ptr<const simulator::StepIndex> index = {};
  simulator::ReplayResult resident = {};  // of the recording with nothing moved
  std::vector<StallRow> stalls = {};      // longest first
  Moment peak_at = {};                    // event, op, layer; its time is in the planned step
  bool feasible = true;                   // device_kept and host_kept
  // Of the plan and with nothing moved, in each memory whatever the plan's placement; none where
  // the trace does not say what the process held.
  std::optional<Reserved> reserved = {};
  std::optional<Reserved> resident_reserved = {};
};

// Unrolls, lowers and replays a plan whose budget is resolved (bytes, no percentage left) on a
// recording. Errors: bad_input (also a schedule with a hazard, naming the pair).
[[nodiscard]] Result<Simulation> simulate(const simulator::StepIndex& recorded,
                                          const simulator::Plan& plan,
                                          const std::string& plan_file);

}  // namespace stowage::report
