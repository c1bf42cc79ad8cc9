// A plan in a file, and whether it was made for the trace at hand.
#pragma once

#include <string>

#include "cli/command_files.h"
#include "report/plans_trace.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// `path` "-" is stdin. Errors: bad_input.
[[nodiscard]] Result<simulator::Plan> load_plan(const std::string& path);

// report::plans_trace(); `files` learns that the trace is read. Errors: also usage, it is an
// output.
[[nodiscard]] Result<report::PlansTrace> plans_trace(const simulator::Plan& plan,
                                                     const std::string& plan_file,
                                                     CommandFiles& files);

// planner::resolve_budget() of the trace that is at hand, errors in `plan_file`. `sha256` is of its
// file (LoadedTrace), empty when there is none.
[[nodiscard]] Status resolve_plans_budget(const Trace& trace, const std::string& sha256,
                                          const std::string& plan_file, simulator::Plan& plan);

}  // namespace stowage::cli
