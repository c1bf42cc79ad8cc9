// One replay with everything that is said about it: what `simulate`, `export` and the desktop
// program start from.
#pragma once

#include <string>
#include <vector>

#include "report/moment.h"
#include "report/stalls.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::report {

struct Simulation {
  simulator::Schedule schedule;
  simulator::ReplayResult result;
  simulator::ReplayDetail detail;
  simulator::ReplayResult resident;
  std::vector<std::string> notes;  // "/saved/N: text" of rules, "site: text" of the lowering
  std::vector<StallRow> stalls;    // longest first
  Moment peak_at;                  // event, op, layer; its time is in the planned step
  bool device_kept = true;         // within plan.budget.device
  bool host_kept = true;           // within plan.budget.host
  bool feasible = true;            // both
};

// Lowers and replays a plan whose budget is resolved (bytes, no percentage left). Errors: bad_input
// (also a schedule with a hazard, naming the pair).
[[nodiscard]] Result<Simulation> simulate(const simulator::StepIndex& index,
                                          const simulator::Plan& plan,
                                          const std::string& plan_file);

}  // namespace stowage::report
