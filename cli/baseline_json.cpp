#include "cli/baseline_json.h"

#include <algorithm>
#include <array>

#include "cli/json_pieces_json.h"
#include "simulator/plan/plan_json.h"
#include "traces/json_bounds.h"
#include "traces/sha256.h"

namespace stowage::cli {
namespace {

const std::string kSchemaName = "stowage-baseline/";

constexpr std::array kClasses = {StorageClass::parameter,       StorageClass::gradient,
                                 StorageClass::optimizer_state, StorageClass::buffer,
                                 StorageClass::activation,      StorageClass::temporary,
                                 StorageClass::input,           StorageClass::output,
                                 StorageClass::workspace,       StorageClass::other};
constexpr std::array kHoldings = {report::Holding::original, report::Holding::reloaded,
                                  report::Holding::host};

struct Refused {
  std::string pointer;
  std::string what;
};

const Json& member(const Json& json, const std::string& at, const char* key) {
  if (!json.is_object()) throw Refused{at, "an object is needed here"};
  const auto found = json.find(key);
  if (found == json.end()) throw Refused{at, std::string("the key \"") + key + "\" is missing"};
  return *found;
}

std::string text_at(const Json& json, const std::string& at, const char* key) {
  const Json& value = member(json, at, key);
  if (!value.is_string()) throw Refused{at + "/" + key, "a text is needed here"};
  return value.get<std::string>();
}

std::int64_t number_at(const Json& json, const std::string& at, const char* key) {
  const Json& value = member(json, at, key);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits || value.get<std::int64_t>() < 0) {
    throw Refused{at + "/" + key, "a whole number from 0 on is needed here"};
  }
  return value.get<std::int64_t>();
}

std::int64_t number_or_null(const Json& json, const std::string& at, const char* key) {
  return member(json, at, key).is_null() ? -1 : number_at(json, at, key);
}

template <class Values>
auto named(const Values& values, const Json& json, const std::string& at, const char* key) {
  const std::string name = text_at(json, at, key);
  for (const auto value : values) {
    if (name_of(value) == name) return value;
  }
  throw Refused{at + "/" + key, "unknown " + std::string(key) + " \"" + name + "\""};
}

Json step_json(const StepIdentity& step) {
  Json json = {{"model", step.model}, {"batch", step.batch},         {"seq", step.seq},
               {"dtype", step.dtype}, {"optimizer", step.optimizer}, {"seed", step.seed}};
  if (!step.autocast.empty()) json["autocast"] = step.autocast;
  if (!step.grad_scaler.empty()) json["grad_scaler"] = step.grad_scaler;
  return json;
}

StepIdentity step_from(const Json& json) {
  const std::string at = "/step";
  const auto text_or_none = [&](const char* key) {
    return json.contains(key) ? text_at(json, at, key) : std::string();
  };
  return {.model = text_at(json, at, "model"),
          .batch = number_at(json, at, "batch"),
          .seq = number_at(json, at, "seq"),
          .dtype = text_at(json, at, "dtype"),
          .autocast = text_or_none("autocast"),
          .optimizer = text_at(json, at, "optimizer"),
          .grad_scaler = text_or_none("grad_scaler"),
          .seed = number_at(json, at, "seed")};
}

Json made_with_json(const MadeWith& made) {
  return {{"stowage", made.stowage},
          {"libtorch", made.libtorch},
          {"device", made.device},
          {"device_name", made.device_name},
          {"allocator", made.allocator},
          {"threads", made.threads},
          {"deterministic", made.deterministic},
          {"plan", made.plan.empty() ? Json(nullptr) : Json(made.plan)},
          {"placement", made.placement.empty() ? Json(nullptr) : Json(made.placement)}};
}

// Where it does not stand, the plan ran in the only memory that there was.
std::string placement_from(const Json& json, const std::string& plan) {
  if (plan.empty()) return {};
  return json.contains("placement") ? text_at(json, "/made_with", "placement") : "caching";
}

MadeWith made_with_from(const Json& json) {
  const std::string at = "/made_with";
  const Json& deterministic = member(json, at, "deterministic");
  if (!deterministic.is_boolean()) {
    throw Refused{at + "/deterministic", "true or false is needed here"};
  }
  const std::string plan =
      member(json, at, "plan").is_null() ? std::string() : text_at(json, at, "plan");
  return {text_at(json, at, "stowage"),   text_at(json, at, "libtorch"),
          text_at(json, at, "device"),    text_at(json, at, "device_name"),
          text_at(json, at, "allocator"), number_at(json, at, "threads"),
          deterministic.get<bool>(),      plan,
          placement_from(json, plan)};
}

StepCost cost_from(const Json& json) {
  const std::string at = "/measured";
  return {number_at(json, at, "peak_requested_bytes"),
          number_at(json, at, "peak_active_bytes"),
          number_or_null(json, at, "peak_reserved_bytes"),
          number_at(json, at, "host_bytes"),
          number_or_null(json, at, "stall_ns"),
          number_or_null(json, at, "step_ns")};
}

Json row_json(const report::PeakRow& row) {
  return {{"holding", name_of(row.holding)},
          {"class", stowage::name_of(row.storage_class)},
          {"layer", row.layer},
          {"op", row.op},
          {"sites", row.sites},
          {"storages", row.storages},
          {"bytes", row.bytes}};
}

report::PeakRow row_from(const Json& json, const std::string& at) {
  report::PeakRow row;
  row.holding = named(kHoldings, json, at, "holding");
  row.storage_class = named(kClasses, json, at, "class");
  row.layer = text_at(json, at, "layer");
  row.op = text_at(json, at, "op");
  const Json& sites = member(json, at, "sites");
  if (!sites.is_array()) throw Refused{at + "/sites", "a list is needed here"};
  for (const Json& site : sites) {
    if (!site.is_string()) throw Refused{at + "/sites", "texts are needed here"};
    row.sites.push_back(site.get<std::string>());
  }
  row.storages = number_at(json, at, "storages");
  row.bytes = number_at(json, at, "bytes");
  return row;
}

std::vector<report::PeakRow> rows_from(const Json& json, const std::string& at) {
  if (!json.is_array()) throw Refused{at, "a list is needed here"};
  std::vector<report::PeakRow> rows;
  for (const Json& row : json)
    rows.push_back(row_from(row, at + "/" + std::to_string(rows.size())));
  return rows;
}

report::PeakContent content_from(const Json& json) {
  const std::string at = "/at_peak";
  report::PeakContent content;
  content.peak_requested = number_at(json, at, "requested_bytes");
  content.op_name = text_at(json, at, "op");
  content.layer = text_at(json, at, "layer");
  content.phase = text_at(json, at, "phase");
  content.on_device = rows_from(member(json, at, "storages"), at + "/storages");
  content.on_host = rows_from(member(json, at, "host"), at + "/host");
  return content;
}

void check_schema(const Json& json) {
  const std::string schema = text_at(json, "", "schema");
  if (schema == kSchemaName + std::to_string(kBaselineSchema)) return;
  if (schema.starts_with(kSchemaName)) {
    throw Refused{"/schema", "the baseline's format " + schema + " is not this version's " +
                                 kSchemaName + std::to_string(kBaselineSchema)};
  }
  throw Refused{"/schema", "\"" + schema.substr(0, 60) + "\" is no baseline"};
}

std::string line(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text;
}

std::string lines(const std::vector<report::PeakRow>& rows) {
  std::string text = "[";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += (i == 0 ? "\n      " : ",\n      ") + line(row_json(rows[i]));
  }
  return text + (rows.empty() ? "]" : "\n    ]");
}

std::string indented(const Json& json) {
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3) {
    text.replace(at, 1, "\n  ");
  }
  return text;
}

}  // namespace

std::string baseline_to_json(const Baseline& baseline) {
  const report::PeakContent& content = baseline.content;
  return "{\n  \"schema\": \"" + kSchemaName + std::to_string(kBaselineSchema) +
         "\",\n  \"step\": " + indented(step_json(baseline.step)) +
         ",\n  \"made_with\": " + indented(made_with_json(baseline.made_with)) +
         ",\n  \"measured\": " + indented(cost_json(baseline.measured)) +
         ",\n  \"at_peak\": {\n    \"requested_bytes\": " + std::to_string(content.peak_requested) +
         ",\n    \"op\": " + line(content.op_name) + ",\n    \"layer\": " + line(content.layer) +
         ",\n    \"phase\": " + line(content.phase) +
         ",\n    \"storages\": " + lines(content.on_device) +
         ",\n    \"host\": " + lines(content.on_host) + "\n  }\n}\n";
}

Result<Baseline> baseline_from_json(std::string_view text, const std::string& file) {
  const auto refuse = [&file](const std::string& pointer, const std::string& what) {
    return Error{ErrorCode::bad_input, what, file, pointer,
                 "write it again with stowage check --update-baseline, into a new file"};
  };
  if (const Status within = check_json_bounds(text, file, kPlanBounds); !within) {
    return refuse("", within.error().message);
  }
  try {
    const Json json = Json::parse(text);
    check_schema(json);
    Baseline baseline;
    baseline.step = step_from(member(json, "", "step"));
    baseline.made_with = made_with_from(member(json, "", "made_with"));
    baseline.measured = cost_from(member(json, "", "measured"));
    baseline.content = content_from(member(json, "", "at_peak"));
    return baseline;
  } catch (const Refused& refused) {
    return refuse(refused.pointer, refused.what);
  } catch (const nlohmann::json::exception&) {
    return refuse("", "the file is no JSON");
  }
}

std::string decisions_hash(simulator::Plan plan) {
  plan.target = {};
  plan.predicted.reset();
  plan.lower_bound_step.reset();
  plan.gap_ppm.reset();
  plan.made_by = {};
  plan.placement = {};
  return sha256_of(simulator::plan_to_json(plan));
}

}  // namespace stowage::cli
