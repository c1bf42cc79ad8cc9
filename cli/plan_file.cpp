#include "cli/plan_file.h"

#include <utility>

#include "planner/budget.h"
#include "simulator/plan/plan_json.h"
#include "simulator/step/step_index.h"
#include "traces/file_io.h"
#include "traces/json_bounds.h"

namespace stowage::cli {
Result<simulator::Plan> load_plan(const std::string& path) {
  const Result<std::string> text = read_file(path, kPlanBounds.bytes);
  if (!text) return text.error();
  return simulator::plan_from_json(*text, path);
}

Result<report::PlansTrace> plans_trace(const simulator::Plan& plan, const std::string& plan_file,
                                       CommandFiles& files) {
  Result<report::PlansTrace> trace =
      report::plans_trace(plan, plan_file, "give the trace with --trace FILE");
  if (!trace || !trace->is_there) return trace;
  if (Status status = files.reads(trace->file, "the plan's trace"); !status) return status.error();
  return trace;
}

Status resolve_plans_budget(const Trace& trace, const std::string& sha256,
                            const std::string& plan_file, simulator::Plan& plan) {
  Status status = planner::resolve_budget(simulator::StepIndex(trace), sha256, plan);
  if (status) return status;
  Error error = std::move(status).error();
  error.file = plan_file;
  return error;
}

}  // namespace stowage::cli
