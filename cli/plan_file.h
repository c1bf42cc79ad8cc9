// A plan in a file, and whether it was made for the trace at hand.
#pragma once

#include <string>

#include "cli/command_files.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// `path` "-" is stdin. Errors: bad_input.
[[nodiscard]] Result<simulator::Plan> load_plan(const std::string& path);

// Where a plan says that its trace is.
struct PlansTrace {
  std::string file;  // empty: it does not say
  bool is_there = false;
};

// The trace that a plan names, relative to the plan's file; `files` learns that it is read. Errors:
// bad_input when it is no regular file (a device, a pipe, a folder), usage when it is an output.
[[nodiscard]] Result<PlansTrace> plans_trace(const simulator::Plan& plan,
                                             const std::string& plan_file, CommandFiles& files);

// Refuses (bad_input) a plan whose fingerprint is another one, naming what differs: the model, the
// batch, the sequence length, the dtype, the optimizer, or only the saved tensors themselves. A
// plan without a fingerprint (written by hand) passes when nothing else that it says contradicts
// the trace; its model may leave out options.
[[nodiscard]] Status check_target(const simulator::Plan& plan, const std::string& plan_file,
                                  const Trace& trace);

// `trace_file` as it stands in a plan at `plan_file`: relative to the plan's folder, with "/"; "-"
// and "" for the plan: relative to the current folder. Empty when the trace came from stdin.
[[nodiscard]] std::string trace_file_for(const std::string& trace_file,
                                         const std::string& plan_file);

}  // namespace stowage::cli
