#include "cli/plan_file.h"

#include <filesystem>

#include "simulator/plan_json.h"
#include "traces/file_io.h"

namespace stowage::cli {
namespace {

constexpr std::int64_t kMaxPlanBytes = 64 << 20;

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

}  // namespace

Result<simulator::Plan> load_plan(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxPlanBytes);
  if (!text) return text.error();
  return simulator::plan_from_json(*text, path);
}

Status check_target(const simulator::Plan& plan, const std::string& plan_file, const Trace& trace) {
  const simulator::PlanTarget& target = plan.target;
  if (target.fingerprint.empty() || target.fingerprint == trace.fingerprint) return Unit{};
  struct Field {
    const char* key;
    std::string planned;
    std::string traced;
  };
  const Field fields[] = {
      {"model", quoted(target.model), quoted(trace.run.model)},
      {"batch", std::to_string(target.batch), std::to_string(trace.run.batch)},
      {"seq", std::to_string(target.seq), std::to_string(trace.run.seq)},
      {"dtype", quoted(target.dtype), quoted(trace.run.dtype)},
      {"optimizer", quoted(target.optimizer), quoted(trace.run.optimizer)},
  };
  const std::string hint =
      "make the plan again with stowage plan, or give the trace it was made for";
  for (const Field& field : fields) {
    if (field.planned != field.traced) {
      return Error{ErrorCode::bad_input,
                   std::string("the plan is for ") + field.key + " " + field.planned +
                       ", the trace is of " + field.key + " " + field.traced,
                   plan_file, std::string("/for/") + field.key, hint};
    }
  }
  return Error{ErrorCode::bad_input,
               "the plan is for other saved tensors than the trace has (another fingerprint)",
               plan_file, "/for/fingerprint", hint};
}

std::string trace_file_for(const std::string& trace_file, const std::string& plan_file) {
  namespace fs = std::filesystem;
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

}  // namespace stowage::cli
