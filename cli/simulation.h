// One replay with everything that `simulate` and `demo-report` print about it.
#pragma once

#include <string>
#include <vector>

#include "cli/inspect_report.h"
#include "cli/terminal_plot.h"
#include "simulator/plan.h"
#include "simulator/replay.h"
#include "simulator/schedule.h"
#include "simulator/trace_index.h"
#include "traces/result.h"

namespace stowage::cli {

struct StallRow {
  std::string site;        // of the first saved tensor of the transfer, or "parameter of LAYER"
  bool copy_back = false;  // the copy to the device, else the copy out
  std::string layer;       // where compute stood
  std::string phase;
  EventId event;
  Nanoseconds start = 0;
  Nanoseconds duration = 0;
  Bytes bytes = 0;
};

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
[[nodiscard]] Result<Simulation> simulate(const simulator::TraceIndex& index,
                                          const simulator::Plan& plan,
                                          const std::string& plan_file);

// What a transfer moves: of an offload and its reloads, or of a parameter's residency.
[[nodiscard]] std::string name_of_copy(const Trace& trace, const simulator::Schedule& schedule,
                                       OffloadId offload, ResidencyId residency);
[[nodiscard]] Bytes bytes_of_copy(const simulator::Schedule& schedule, OffloadId offload,
                                  ResidencyId residency);

// Requested bytes over the planned step's time.
[[nodiscard]] MemoryCurve curve_of(const simulator::ReplayDetail& detail, Nanoseconds step);

}  // namespace stowage::cli
