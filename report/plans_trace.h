// Where a plan says that its trace is, read and written.
#pragma once

#include <string>

#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::report {

struct PlansTrace {
  std::string file;  // empty: it does not say
  bool is_there = false;
};

// The trace that a plan names, relative to the plan's file ("-": to the current folder). Errors:
// bad_input, with `hint`, when it is there and no regular file (a device, a pipe, a folder).
[[nodiscard]] Result<PlansTrace> plans_trace(const simulator::Plan& plan,
                                             const std::string& plan_file, const char* hint);

// `trace_file` as it stands in a plan at `plan_file`: relative to the plan's folder, with "/"; "-"
// and "" for the plan: relative to the current folder. Empty when the trace came from stdin.
[[nodiscard]] std::string trace_file_for(const std::string& trace_file,
                                         const std::string& plan_file);

}  // namespace stowage::report
