#include "simulator/plan/plan_json.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "simulator/plan/plan_reader_json.h"
#include "simulator/plan/program_point.h"

namespace stowage::simulator {
namespace {

using plan_json::is_percentage;
using plan_json::Json;
using plan_json::kSchema;

// One line: { "a": 1, "b": [2, 3] }.
std::string one_line(const Json& json) {
  if (json.is_array()) {
    std::string out;
    for (const Json& item : json) out += (out.empty() ? "" : ", ") + one_line(item);
    return "[" + out + "]";
  }
  if (json.is_object()) {
    std::string out = "{";
    for (const auto& item : json.items()) {
      out += (out.size() > 1 ? ", " : " ") + one_line(Json(item.key())) + ": " +
             one_line(item.value());
    }
    return out + (out.size() > 1 ? " }" : "}");
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json target_json(const PlanTarget& target) {
  Json json = Json::object();
  json["model"] = target.model;
  json["batch"] = target.batch;
  if (target.seq != 0) json["seq"] = target.seq;
  json["dtype"] = target.dtype;
  if (!target.autocast.empty()) json["autocast"] = target.autocast;
  json["optimizer"] = target.optimizer;
  if (!target.grad_scaler.empty()) json["grad_scaler"] = target.grad_scaler;
  if (!target.device.empty()) json["device"] = target.device;
  if (target.threads != 0) json["threads"] = target.threads;
  json["fingerprint"] = target.fingerprint;
  if (!target.trace_file.empty()) json["trace_file"] = target.trace_file;
  if (!target.trace.empty()) json["trace"] = target.trace;
  return json;
}

Json budget_json(const PlanBudget& budget) {
  Json json = Json::object();
  if (!budget.device_text.empty()) {
    json["device"] = budget.device_text;
    if (is_percentage(budget.device_text) && budget.device) json["device_bytes"] = *budget.device;
  } else if (budget.device) {
    json["device"] = *budget.device;
  }
  const bool has_device = budget.device || !budget.device_text.empty();
  if (has_device || budget.on != PeakKind::active) json["on"] = name_of(budget.on);
  if (budget.automatic) json["automatic_bytes"] = *budget.automatic;
  if (!budget.host_text.empty()) {
    json["host"] = budget.host_text;
  } else if (budget.host) {
    json["host"] = *budget.host;
  }
  return json;
}

Json rule_json(const SavedRule& rule) {
  Json json = Json::object();
  if (rule.site) json["site"] = *rule.site;
  if (rule.storage_class) json["class"] = name_of(*rule.storage_class);
  if (rule.op) json["op"] = *rule.op;
  if (rule.min_bytes) json["min_bytes"] = *rule.min_bytes;
  json["do"] = name_of(rule.decision);
  if (rule.decision == Decision::recompute) json["by"] = "ops";
  if (rule.decision != Decision::offload) return json;
  if (rule.release.kind != ReleasePoint::Kind::automatic) {
    json["release"] = format_release_point(rule.release);
  }
  if (rule.reload.kind != ReloadPoint::Kind::automatic) {
    json["reload"] = format_reload_point(rule.reload);
  }
  if (rule.copy_out != CopyMode::lane) json["copy_out"] = name_of(rule.copy_out);
  if (rule.copy_in != CopyMode::lane) json["copy_in"] = name_of(rule.copy_in);
  if (!rule.share) json["share"] = false;
  return json;
}

Json recompute_json(const RecomputeRule& rule) {
  Json json = Json::object();
  json["segment"] = rule.segment;
  if (rule.each == RecomputeRule::kAll) {
    json["each"] = "run";
  } else if (rule.each != 1) {
    json["each"] = rule.each;
  }
  if (rule.boundary) json["boundary"] = name_of(*rule.boundary);
  if (!rule.within.empty()) {
    Json within = Json::array();
    for (const RecomputeRule& inner : rule.within) within.push_back(recompute_json(inner));
    json["within"] = std::move(within);
  }
  return json;
}

Json stream_json(StreamMode mode) {
  switch (mode) {
    case StreamMode::off:
      return false;
    case StreamMode::forward:
      return "forward";
    case StreamMode::backward:
      return "backward";
    case StreamMode::always:
      break;
  }
  return true;
}

Json stream_json(const StreamModes& modes) {
  if (modes.by_shard().empty()) return stream_json(modes.of(0));
  Json json = Json::array();
  for (const StreamMode mode : modes.by_shard()) json.push_back(stream_json(mode));
  return json;
}

// On one line if it fits there, else a shard a line.
std::string parameters_text(const ParameterPlan& parameters) {
  constexpr std::size_t kLongest = 120;
  Json json = Json::object();
  json["shards"] = parameters.shards;
  json["stream"] = stream_json(parameters.stream);
  if (parameters.prefetch) json["prefetch"] = *parameters.prefetch;
  std::string text = "\"parameters\": " + one_line(json);
  if (text.size() <= kLongest || parameters.shards.empty()) return text;
  text = "\"parameters\": {\n    \"shards\": [";
  for (const auto& shard : parameters.shards) {
    text += (&shard == parameters.shards.data() ? "\n      " : ",\n      ") + one_line(Json(shard));
  }
  text += "\n    ]";
  json.erase("shards");
  for (const auto& item : json.items()) {
    text += ",\n    \"" + item.key() + "\": " + one_line(item.value());
  }
  return text + "\n  }";
}

// One rule a line; none where there are no rules.
template <class Rule, class ToJson>
void add_list(std::vector<std::string>& lines, const char* key, const std::vector<Rule>& rules,
              const ToJson& to_json) {
  if (rules.empty()) return;
  std::string text = std::string("\"") + key + "\": [";
  for (const Rule& rule : rules) {
    text += (&rule == rules.data() ? "\n    " : ",\n    ") + one_line(to_json(rule));
  }
  lines.push_back(text + "\n  ]");
}

// 12000 ppm -> "0.012". Digits by integer arithmetic: the same on every machine.
std::string decimal(std::int64_t ppm) {
  std::string text = std::to_string(ppm / kPpm);
  std::string digits = std::to_string(kPpm + ppm % kPpm).substr(1);
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
  return digits.empty() ? text : text + "." + digits;
}

}  // namespace

Result<Plan> plan_from_json(std::string_view text, const std::string& file) {
  return plan_json::PlanReader(file).read(text);
}

std::string plan_to_json(const Plan& plan) {
  std::vector<std::string> lines;
  lines.push_back(std::string("\"schema\": \"") + kSchema + "\"");
  if (plan.target != PlanTarget{})
    lines.push_back("\"for\": " + one_line(target_json(plan.target)));
  if (plan.budget != PlanBudget{}) {
    lines.push_back("\"budget\": " + one_line(budget_json(plan.budget)));
  }
  if (plan.placement != PlacementMode::caching) {
    lines.push_back(std::string("\"placement\": \"") + name_of(plan.placement) + "\"");
  }
  std::string rules = "\"saved\": [";
  for (const SavedRule& rule : plan.saved) {
    rules += (&rule == plan.saved.data() ? "\n    " : ",\n    ") + one_line(rule_json(rule));
  }
  lines.push_back(rules + (plan.saved.empty() ? "]" : "\n  ]"));
  add_list(lines, "recompute", plan.recompute, recompute_json);
  if (plan.parameters) lines.push_back(parameters_text(*plan.parameters));
  add_list(lines, "gradients", plan.gradients, [](const GradientRule& rule) {
    Json json = Json::object();
    json["layer"] = rule.layer;
    if (rule.place != GradientPlace::device) json["place"] = name_of(rule.place);
    return json;
  });
  add_list(lines, "optimizer", plan.optimizer, [](const OptimizerRule& rule) {
    Json json = Json::object();
    json["layer"] = rule.layer;
    if (rule.state != StatePlace::device) json["state"] = name_of(rule.state);
    if (rule.state == StatePlace::host) json["step"] = name_of(rule.state);
    return json;
  });
  add_list(lines, "micro_batches", plan.micro_batches, [](const MicroBatchRule& rule) {
    Json json = Json::object();
    json["segment"] = rule.segment;
    json["count"] = rule.count;
    return json;
  });
  if (plan.predicted) {
    const Predicted& predicted = *plan.predicted;
    Json json = Json::object();
    json["peak_requested_bytes"] = predicted.peak_requested;
    json["peak_active_bytes"] = predicted.peak_active;
    json["peak_reserved_bytes"] =
        predicted.peak_reserved < 0 ? Json(nullptr) : Json(predicted.peak_reserved);
    json["step_ns"] = predicted.step;
    json["stall_ns"] = predicted.stall;
    json["host_bytes"] = predicted.host;
    lines.push_back("\"predicted\": " + one_line(json));
  }
  if (plan.lower_bound_step) {
    lines.push_back("\"lower_bound\": { \"step_ns\": " + std::to_string(*plan.lower_bound_step) +
                    " }");
  }
  if (plan.gap_ppm)
    lines.push_back("\"gap\": " + decimal(std::max<std::int64_t>(*plan.gap_ppm, 0)));
  if (plan.made_by != MadeBy{}) {
    Json json = Json::object();
    json["tool"] = plan.made_by.tool;
    json["policy"] = plan.made_by.policy;
    json["seed"] = plan.made_by.seed;
    if (!plan.made_by.created.empty()) json["created"] = plan.made_by.created;
    lines.push_back("\"made_by\": " + one_line(json));
  }

  std::string out = "{\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += "  " + lines[i] + (i + 1 < lines.size() ? ",\n" : "\n");
  }
  return out + "}\n";
}

}  // namespace stowage::simulator
