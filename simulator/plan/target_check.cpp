#include "simulator/plan/target_check.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

namespace stowage::simulator {
namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

// "gpt2:layers=6" and "gpt2:heads=4,layers=6": the same model, and every option that the first one
// gives stands in the second.
bool is_part_of(const std::string& shorter, const std::string& longer) {
  const auto split = [](const std::string& spec) {
    const auto colon = std::min(spec.find(':'), spec.size());
    return std::pair(spec.substr(0, colon), spec.substr(std::min(colon + 1, spec.size())));
  };
  const auto [name, options] = split(shorter);
  const auto [all_name, all_options] = split(longer);
  if (name != all_name) return false;
  std::istringstream rest(options);
  for (std::string option; std::getline(rest, option, ',');) {
    if (("," + all_options + ",").find("," + option + ",") == std::string::npos) return false;
  }
  return true;
}

}  // namespace

Status check_target(const Plan& plan, const std::string& plan_file, const Trace& trace) {
  const PlanTarget& target = plan.target;
  const bool other = !target.fingerprint.empty() && target.fingerprint != trace.fingerprint;
  if (!other && !target.fingerprint.empty()) return Unit{};
  const auto none_or = [](const std::string& text) {
    return text.empty() ? std::string("none") : quoted(text);
  };
  // A plan that was made from a trace says none of these by leaving it out.
  const auto said = [&](const std::string& text) {
    return text.empty() && target.fingerprint.empty() ? quoted(text) : none_or(text);
  };
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
      {"autocast", said(target.autocast), none_or(trace.run.autocast)},
      {"optimizer", quoted(target.optimizer), quoted(trace.run.optimizer)},
      {"grad_scaler", said(target.grad_scaler), none_or(trace.run.grad_scaler)},
      {"device", quoted(target.device), quoted(trace.env.device)},
      {"threads", std::to_string(target.threads), std::to_string(trace.run.threads)},
  };
  const std::string hint =
      "make the plan again with stowage plan, or give the trace it was made for";
  for (const Field& field : fields) {
    // What a plan leaves out it does not claim; a model may be written with fewer options.
    const bool absent = field.planned == "0" || field.planned == "''";
    const bool same = field.planned == field.traced || absent ||
                      (field.key == std::string_view("model") && !other &&
                       is_part_of(target.model, trace.run.model));
    if (!same) {
      return Error{ErrorCode::bad_input,
                   std::string("the plan is for ") + field.key + " " + field.planned +
                       ", the trace is of " + field.key + " " + field.traced,
                   plan_file, std::string("/for/") + field.key, hint};
    }
  }
  if (!other) return Unit{};
  return Error{ErrorCode::bad_input,
               "the plan is for other saved tensors than the trace has (another fingerprint)",
               plan_file, "/for/fingerprint", hint};
}

}  // namespace stowage::simulator
