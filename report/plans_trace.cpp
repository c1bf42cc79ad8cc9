#include "report/plans_trace.h"

#include <filesystem>
#include <system_error>

namespace stowage::report {

namespace fs = std::filesystem;

Result<PlansTrace> plans_trace(const simulator::Plan& plan, const std::string& plan_file,
                               const char* hint) {
  PlansTrace trace;
  if (plan.target.trace_file.empty()) return trace;
  const fs::path folder = fs::path(plan_file == "-" ? "" : plan_file).parent_path();
  trace.file = (folder / plan.target.trace_file).string();
  std::error_code ignored;
  trace.is_there = fs::exists(trace.file, ignored);
  if (trace.is_there && !fs::is_regular_file(trace.file, ignored)) {
    return Error{ErrorCode::bad_input, "names " + trace.file + ", which is no regular file",
                 plan_file, "/for/trace_file", hint};
  }
  return trace;
}

std::string trace_file_for(const std::string& trace_file, const std::string& plan_file) {
  if (trace_file.empty() || trace_file == "-") return {};
  std::error_code error;
  const fs::path trace = fs::weakly_canonical(fs::absolute(trace_file, error), error);
  const bool here = plan_file.empty() || plan_file == "-";
  const fs::path folder =
      here ? fs::current_path(error)
           : fs::weakly_canonical(fs::absolute(plan_file, error), error).parent_path();
  const fs::path relative = trace.lexically_relative(folder);
  return (relative.empty() ? trace : relative).generic_string();
}

}  // namespace stowage::report
