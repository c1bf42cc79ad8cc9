#include "simulator/plan_json.h"

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/pattern.h"
#include "simulator/program_point.h"
#include "traces/enum_names.h"
#include "traces/nearest.h"
#include "traces/size_text.h"

namespace stowage::simulator {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "stowage-plan/1";
constexpr const char* kSchemaPrefix = "stowage-plan/";

// ---- Reading ----------------------------------------------------------------------------------

std::string child(const std::string& pointer, std::string_view key) {
  std::string escaped = pointer + "/";
  for (const char c : key) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string child(const std::string& pointer, std::size_t index) {
  return pointer + "/" + std::to_string(index);
}

// What the user wrote, short enough for one line of an error.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out = Json(std::string(text.substr(0, kLongest)))
                        .dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kLongest ? out.insert(out.size() - 1, "..") : out;
}

// An error is one line, whatever characters the file put into it.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

// Reads one document; the first error is kept and ends the reading.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Result<Plan> read(std::string_view text);

 private:
  // Each returns false after an error was noted.
  bool fail(const std::string& pointer, std::string message, std::string hint = "") {
    if (!error_) {
      error_ = Error{ErrorCode::bad_input, printable(std::move(message)), file_, printable(pointer),
                     printable(std::move(hint))};
    }
    return false;
  }
  bool fail(const std::string& pointer, const Error& error) {
    return fail(pointer, error.message, error.hint);
  }
  bool object(const Json& json, const std::string& pointer) {
    return json.is_object() ||
           fail(pointer, std::string("expected an object, found ") + json.type_name());
  }
  bool known_keys(const Json& json, const std::string& pointer,
                  std::initializer_list<const char*> keys) {
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& item : json.items()) {
      bool found = false;
      for (const std::string& key : known) found = found || key == item.key();
      if (found) continue;
      const std::string near = nearest(item.key(), known);
      std::string hint = near.empty() ? "known keys: " : "did you mean \"" + near + "\"?";
      if (near.empty()) {
        for (const std::string& key : known) hint += (&key == known.data() ? "" : ", ") + key;
      }
      return fail(child(pointer, item.key()), "unknown key " + in_quotes(item.key()), hint);
    }
    return true;
  }
  bool text(const Json& json, const std::string& pointer, std::string& out) {
    if (!json.is_string()) {
      return fail(pointer, std::string("expected a string, found ") + json.type_name());
    }
    out = json.get_ref<const std::string&>();
    return true;
  }
  bool integer(const Json& json, const std::string& pointer, std::int64_t lowest,
               std::int64_t& out) {
    if (!json.is_number_integer()) {
      return fail(pointer, std::string("expected a whole number, found ") +
                               (json.is_number() ? json.dump() : json.type_name()));
    }
    if (json.is_number_unsigned() &&
        json.get<std::uint64_t>() >
            static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return fail(pointer, "the number " + json.dump() + " is too large");
    }
    const auto value = json.get<std::int64_t>();
    if (value < lowest) {
      return fail(pointer, "the number " + json.dump() + " is too small",
                  "at least " + std::to_string(lowest));
    }
    out = value;
    return true;
  }
  // One of `names`; on failure names the nearest.
  bool one_of(const Json& json, const std::string& pointer, const std::vector<std::string>& names,
              std::size_t& out) {
    std::string value;
    if (!text(json, pointer, value)) return false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == value) {
        out = i;
        return true;
      }
    }
    const std::string near = nearest(value, names);
    std::string hint = near.empty() ? "one of " : "did you mean \"" + near + "\"?";
    if (near.empty()) {
      for (const std::string& name : names) hint += (&name == names.data() ? "" : ", ") + name;
    }
    return fail(pointer, "unknown value " + in_quotes(value), hint);
  }

  bool parse(std::string_view text, Json& out);
  bool schema(const Json& document);
  bool target(const Json& json, PlanTarget& out);
  bool budget(const Json& json, PlanBudget& out);
  bool rules(const Json& json, std::vector<SavedRule>& out);
  bool rule(const Json& json, const std::string& pointer, SavedRule& out);
  bool predicted(const Json& json, Predicted& out);
  bool made_by(const Json& json, MadeBy& out);
  bool unsupported(const Json& document);

  std::string file_;
  std::optional<Error> error_;
};

// Depth of nesting that a text reaches, counted without building anything.
int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

bool Reader::parse(std::string_view text, Json& out) {
  if (depth_of(text) > kMaxPlanDepth) {
    return fail("", "the nesting is deeper than " + std::to_string(kMaxPlanDepth),
                "this is no plan");
  }
  std::vector<std::set<std::string>> keys;
  std::string doubled;
  const Json::parser_callback_t no_key_twice = [&](int /*depth*/, Json::parse_event_t event,
                                                   Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && doubled.empty()) doubled = in_quotes(key);
    }
    return true;
  };
  try {
    out = Json::parse(text.begin(), text.end(), no_key_twice);
  } catch (const Json::exception& e) {
    std::string what = e.what();
    if (const auto start = what.find("] "); start != std::string::npos) what.erase(0, start + 2);
    return fail("", "not JSON: " + what, "a plan is what stowage plan writes");
  }
  if (!doubled.empty()) return fail("", "the key " + doubled + " stands twice in one object");
  return true;
}

bool Reader::schema(const Json& document) {
  const auto found = document.find("schema");
  if (found == document.end()) {
    return fail("/schema", "the key \"schema\" is missing",
                std::string("a plan begins with \"schema\": \"") + kSchema + "\"");
  }
  if (found->is_object()) {
    return fail("/schema", "this is no plan",
                std::string("a trace looks like this; a plan has \"schema\": \"") + kSchema + "\"");
  }
  std::string name;
  if (!text(*found, "/schema", name)) return false;
  if (name == kSchema) return true;
  if (name.rfind(kSchemaPrefix, 0) == 0) {
    return fail("/schema", "the plan's version " + in_quotes(name) + " is not known here",
                std::string("this program reads ") + kSchema);
  }
  return fail("/schema", in_quotes(name) + " is no plan", std::string("expected ") + kSchema);
}

bool Reader::target(const Json& json, PlanTarget& out) {
  const std::string at = "/for";
  if (!object(json, at) || !known_keys(json, at,
                                       {"model", "batch", "seq", "dtype", "optimizer", "device",
                                        "threads", "fingerprint", "trace_file", "trace"})) {
    return false;
  }
  const auto string_of = [&](const char* key, std::string& to) {
    const auto found = json.find(key);
    return found == json.end() || text(*found, child(at, key), to);
  };
  const auto number_of = [&](const char* key, std::int64_t& to) {
    const auto found = json.find(key);
    return found == json.end() || integer(*found, child(at, key), 0, to);
  };
  return string_of("model", out.model) && number_of("batch", out.batch) &&
         number_of("seq", out.seq) && string_of("dtype", out.dtype) &&
         string_of("optimizer", out.optimizer) && string_of("device", out.device) &&
         number_of("threads", out.threads) && string_of("fingerprint", out.fingerprint) &&
         string_of("trace_file", out.trace_file) && string_of("trace", out.trace);
}

bool is_percentage(std::string_view text) {
  return text.find('%') != std::string_view::npos;
}

bool Reader::budget(const Json& json, PlanBudget& out) {
  const std::string at = "/budget";
  if (!object(json, at) ||
      !known_keys(json, at, {"device", "device_bytes", "on", "automatic_bytes", "host"})) {
    return false;
  }
  if (const auto device = json.find("device"); device != json.end()) {
    if (device->is_string()) {
      out.device_text = device->get_ref<const std::string&>();
      // Any base will do to see whether a percentage is well formed.
      auto parsed = parse_size(out.device_text, kPpm);
      if (!parsed) return fail(child(at, "device"), parsed.error());
      if (!is_percentage(out.device_text)) out.device = *parsed;
    } else {
      Bytes bytes = 0;
      if (!integer(*device, child(at, "device"), 1, bytes)) return false;
      out.device = bytes;
    }
  }
  if (const auto exact = json.find("device_bytes"); exact != json.end()) {
    Bytes bytes = 0;
    if (!integer(*exact, child(at, "device_bytes"), 1, bytes)) return false;
    if (out.device && *out.device != bytes) {
      return fail(child(at, "device_bytes"), "is not what \"device\" says",
                  "leave device_bytes out; it belongs to a percentage");
    }
    out.device = bytes;
  }
  if (const auto on = json.find("on"); on != json.end()) {
    std::size_t index = 0;
    if (!one_of(*on, child(at, "on"), {"requested", "active", "reserved"}, index)) return false;
    out.on = static_cast<PeakKind>(index);
  }
  if (const auto automatic = json.find("automatic_bytes"); automatic != json.end()) {
    Bytes bytes = 0;
    if (!integer(*automatic, child(at, "automatic_bytes"), 0, bytes)) return false;
    out.automatic = bytes;
  }
  if (const auto host = json.find("host"); host != json.end()) {
    if (host->is_string()) {
      out.host_text = host->get_ref<const std::string&>();
      auto parsed = parse_size(out.host_text);
      if (!parsed) return fail(child(at, "host"), parsed.error());
      out.host = *parsed;
    } else {
      Bytes bytes = 0;
      if (!integer(*host, child(at, "host"), 1, bytes)) return false;
      out.host = bytes;
    }
  }
  return true;
}

bool Reader::rule(const Json& json, const std::string& at, SavedRule& out) {
  if (!object(json, at)) return false;
  const auto action = json.find("do");
  if (action == json.end()) {
    return known_keys(json, at,
                      {"site", "class", "op", "min_bytes", "do", "by", "release", "reload",
                       "copy_out", "copy_in", "share"}) &&
           fail(child(at, "do"), "the key \"do\" is missing", "\"do\": \"keep\" or \"offload\"");
  }
  std::size_t index = 0;
  if (!one_of(*action, child(at, "do"), {"keep", "offload", "recompute"}, index)) return false;
  if (index == 2) {
    return fail(child(at, "do"), "\"recompute\" is not supported yet", "keep or offload");
  }
  out.decision = static_cast<Decision>(index);
  if (out.decision == Decision::keep) {
    for (const char* key : {"release", "reload", "copy_out", "copy_in", "share"}) {
      if (json.contains(key)) {
        return fail(child(at, key), "says nothing beside \"do\": \"keep\"",
                    "leave it out, or say \"do\": \"offload\"");
      }
    }
  }
  if (json.contains("by")) {
    return fail(child(at, "by"), "belongs to \"recompute\", which is not supported yet",
                "leave it out");
  }
  if (!known_keys(json, at,
                  {"site", "class", "op", "min_bytes", "do", "release", "reload", "copy_out",
                   "copy_in", "share"})) {
    return false;
  }

  const auto pattern_of = [&](const char* key, std::optional<std::string>& to) {
    const auto found = json.find(key);
    if (found == json.end()) return true;
    std::string pattern;
    if (!text(*found, child(at, key), pattern)) return false;
    if (auto parsed = Pattern::parse(pattern); !parsed) {
      return fail(child(at, key), parsed.error());
    }
    to = std::move(pattern);
    return true;
  };
  if (!pattern_of("site", out.site) || !pattern_of("op", out.op)) return false;
  if (const auto found = json.find("class"); found != json.end()) {
    if (*found == "param") {  // as PyTorch users say it
      out.storage_class = StorageClass::parameter;
    } else {
      const auto names = enum_names<StorageClass>();
      std::size_t which = 0;
      if (!one_of(*found, child(at, "class"), {names.begin(), names.end()}, which)) return false;
      out.storage_class = static_cast<StorageClass>(which);
    }
  }
  if (const auto found = json.find("min_bytes"); found != json.end()) {
    Bytes bytes = 0;
    if (found->is_string()) {
      auto parsed = parse_size(found->get_ref<const std::string&>());
      if (!parsed) return fail(child(at, "min_bytes"), parsed.error());
      bytes = *parsed;
    } else if (!integer(*found, child(at, "min_bytes"), 0, bytes)) {
      return false;
    }
    out.min_bytes = bytes;
  }
  std::string point;
  if (const auto found = json.find("release"); found != json.end()) {
    if (!text(*found, child(at, "release"), point)) return false;
    auto parsed = parse_release_point(point);
    if (!parsed) return fail(child(at, "release"), parsed.error());
    out.release = std::move(*parsed);
  }
  if (const auto found = json.find("reload"); found != json.end()) {
    if (!text(*found, child(at, "reload"), point)) return false;
    auto parsed = parse_reload_point(point);
    if (!parsed) return fail(child(at, "reload"), parsed.error());
    out.reload = std::move(*parsed);
  }
  const auto mode_of = [&](const char* key, CopyMode& to) {
    const auto found = json.find(key);
    if (found == json.end()) return true;
    std::size_t which = 0;
    if (!one_of(*found, child(at, key), {"lane", "compute", "blocking"}, which)) return false;
    to = static_cast<CopyMode>(which);
    return true;
  };
  if (!mode_of("copy_out", out.copy_out) || !mode_of("copy_in", out.copy_in)) return false;
  if (const auto found = json.find("share"); found != json.end()) {
    if (!found->is_boolean()) {
      return fail(child(at, "share"),
                  std::string("expected true or false, found ") + found->type_name());
    }
    out.share = found->get<bool>();
  }
  return true;
}

bool Reader::rules(const Json& json, std::vector<SavedRule>& out) {
  if (!json.is_array()) {
    return fail("/saved", std::string("expected a list of rules, found ") + json.type_name());
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    SavedRule next;
    if (!rule(json[i], child("/saved", i), next)) return false;
    out.push_back(std::move(next));
  }
  return true;
}

bool Reader::predicted(const Json& json, Predicted& out) {
  const std::string at = "/predicted";
  if (!object(json, at) ||
      !known_keys(json, at,
                  {"peak_requested_bytes", "peak_active_bytes", "peak_reserved_bytes", "step_ns",
                   "stall_ns", "host_bytes"})) {
    return false;
  }
  const auto number_of = [&](const char* key, std::int64_t& to) {
    const auto found = json.find(key);
    return found == json.end() || integer(*found, child(at, key), 0, to);
  };
  if (const auto reserved = json.find("peak_reserved_bytes");
      reserved != json.end() && !reserved->is_null() &&
      !integer(*reserved, child(at, "peak_reserved_bytes"), 0, out.peak_reserved)) {
    return false;
  }
  return number_of("peak_requested_bytes", out.peak_requested) &&
         number_of("peak_active_bytes", out.peak_active) && number_of("step_ns", out.step) &&
         number_of("stall_ns", out.stall) && number_of("host_bytes", out.host);
}

bool Reader::made_by(const Json& json, MadeBy& out) {
  const std::string at = "/made_by";
  if (!object(json, at) || !known_keys(json, at, {"tool", "policy", "seed", "created"})) {
    return false;
  }
  const auto string_of = [&](const char* key, std::string& to) {
    const auto found = json.find(key);
    return found == json.end() || text(*found, child(at, key), to);
  };
  if (const auto seed = json.find("seed");
      seed != json.end() &&
      !integer(*seed, child(at, "seed"), std::numeric_limits<std::int64_t>::min(), out.seed)) {
    return false;
  }
  return string_of("tool", out.tool) && string_of("policy", out.policy) &&
         string_of("created", out.created);
}

// Parts that Stowage cannot run yet may be present as long as they ask for nothing.
bool Reader::unsupported(const Json& document) {
  const auto refuse = [&](const std::string& pointer) {
    return fail(pointer, "not supported yet", "leave this part out");
  };
  for (const char* key : {"recompute", "micro_batches"}) {
    const auto found = document.find(key);
    if (found == document.end()) continue;
    const std::string at = child("", key);
    if (!found->is_array()) {
      return fail(at, std::string("expected a list, found ") + found->type_name());
    }
    for (std::size_t i = 0; i < found->size(); ++i) {
      const Json& item = (*found)[i];
      const bool nothing = std::string_view(key) == "micro_batches" && item.is_object() &&
                           item.contains("count") && item["count"] == 1;
      if (!nothing) return refuse(child(at, i));
    }
  }
  if (const auto found = document.find("parameters"); found != document.end()) {
    if (!object(*found, "/parameters") ||
        !known_keys(*found, "/parameters", {"shards", "stream", "prefetch"})) {
      return false;
    }
    const bool nothing =
        found->empty() || (found->contains("stream") && (*found)["stream"] == false);
    if (!nothing) return refuse("/parameters");
  }
  const auto resident = [&](const char* part, std::initializer_list<const char*> keys) {
    const auto found = document.find(part);
    if (found == document.end()) return true;
    const std::string at = child("", part);
    if (!object(*found, at) || !known_keys(*found, at, keys)) return false;
    for (const auto& item : found->items()) {
      if (item.value() != "device") return refuse(child(at, item.key()));
    }
    return true;
  };
  return resident("gradients", {"place"}) && resident("optimizer", {"state", "step"});
}

Result<Plan> Reader::read(std::string_view text) {
  Json document;
  Plan plan;
  const auto part = [&](const char* key, auto&& reader) {
    const auto found = document.find(key);
    return found == document.end() || reader(*found);
  };
  const auto all = [&] {
    if (!parse(text, document) || !object(document, "") || !schema(document)) return false;
    if (!known_keys(document, "",
                    {"schema", "for", "budget", "saved", "recompute", "parameters", "gradients",
                     "optimizer", "micro_batches", "predicted", "lower_bound", "gap", "made_by"}) ||
        !unsupported(document)) {
      return false;
    }
    if (!part("for", [&](const Json& json) { return target(json, plan.target); }) ||
        !part("budget", [&](const Json& json) { return budget(json, plan.budget); }) ||
        !part("saved", [&](const Json& json) { return rules(json, plan.saved); }) ||
        !part("predicted",
              [&](const Json& json) { return predicted(json, plan.predicted.emplace()); }) ||
        !part("made_by", [&](const Json& json) { return made_by(json, plan.made_by); })) {
      return false;
    }
    const auto bound = [&](const Json& json) {
      if (!object(json, "/lower_bound") || !known_keys(json, "/lower_bound", {"step_ns"})) {
        return false;
      }
      const auto step = json.find("step_ns");
      return step == json.end() ||
             integer(*step, "/lower_bound/step_ns", 0, plan.lower_bound_step.emplace(0));
    };
    const auto gap = [&](const Json& json) {
      constexpr double kLargest = 1e6;
      if (!json.is_number()) {
        return fail("/gap", std::string("expected a number, found ") + json.type_name());
      }
      const auto value = json.get<double>();
      if (!(value >= 0 && value <= kLargest)) {
        return fail("/gap", "the number " + json.dump() + " is no gap", "between 0 and 1000000");
      }
      plan.gap_ppm = std::llround(value * static_cast<double>(kPpm));
      return true;
    };
    return part("lower_bound", bound) && part("gap", gap);
  };
  if (!all()) return *error_;
  return plan;
}

// ---- Writing ----------------------------------------------------------------------------------

// One line: { "a": 1, "b": [2, 3] }.
std::string one_line(const Json& json) {
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
  json["optimizer"] = target.optimizer;
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
  json["on"] = name_of(budget.on);
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
  if (rule.decision == Decision::keep) return json;
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

// 12000 ppm -> "0.012". Digits by integer arithmetic: the same on every machine.
std::string decimal(std::int64_t ppm) {
  std::string text = std::to_string(ppm / kPpm);
  std::string digits = std::to_string(kPpm + ppm % kPpm).substr(1);
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
  return digits.empty() ? text : text + "." + digits;
}

}  // namespace

Result<Plan> plan_from_json(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

std::string plan_to_json(const Plan& plan) {
  std::vector<std::string> lines;
  lines.push_back(std::string("\"schema\": \"") + kSchema + "\"");
  if (plan.target != PlanTarget{})
    lines.push_back("\"for\": " + one_line(target_json(plan.target)));
  if (plan.budget != PlanBudget{}) {
    lines.push_back("\"budget\": " + one_line(budget_json(plan.budget)));
  }
  std::string rules = "\"saved\": [";
  for (const SavedRule& rule : plan.saved) {
    rules += (&rule == plan.saved.data() ? "\n    " : ",\n    ") + one_line(rule_json(rule));
  }
  lines.push_back(rules + (plan.saved.empty() ? "]" : "\n  ]"));
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
