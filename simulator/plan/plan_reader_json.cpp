#include "simulator/plan/plan_reader_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulator/plan/doubled_key_json.h"
#include "simulator/plan/plan_json.h"
#include "traces/json_bounds.h"
#include "traces/nearest.h"
#include "traces/size_text.h"

namespace stowage::simulator::plan_json {
namespace {

constexpr const char* kSchemaPrefix = "stowage-plan/";
constexpr const char* kSeeFormat = "docs/plan-format.md says what may stand there";

}  // namespace

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

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out = Json(std::string(text.substr(0, kLongest)))
                        .dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kLongest ? out.insert(out.size() - 1, "..") : out;
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

bool is_percentage(std::string_view text) {
  return text.find('%') != std::string_view::npos;
}

bool PlanReader::object(const Json& json, const std::string& pointer) {
  return json.is_object() ||
         fail(pointer, std::string("expected an object, found ") + json.type_name());
}

bool PlanReader::known_keys(const Json& json, const std::string& pointer,
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

bool PlanReader::text(const Json& json, const std::string& pointer, std::string& out) {
  if (!json.is_string()) {
    return fail(pointer, std::string("expected a string, found ") + json.type_name(), kSeeFormat);
  }
  out = json.get_ref<const std::string&>();
  return true;
}

bool PlanReader::integer(const Json& json, const std::string& pointer, std::int64_t lowest,
                         std::int64_t& out) {
  if (!json.is_number_integer()) {
    return fail(pointer,
                std::string("expected a whole number, found ") +
                    (json.is_number() ? json.dump() : json.type_name()),
                kSeeFormat);
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

bool PlanReader::one_of(const Json& json, const std::string& pointer,
                        const std::vector<std::string>& names, std::size_t& out) {
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

bool PlanReader::parse(std::string_view text, Json& out) {
  if (const Status within = check_json_bounds(text, file_, kPlanBounds); !within) {
    return fail("", within.error());
  }
  DoubledKey doubled;
  const Json::parser_callback_t no_key_twice = [&](int /*depth*/, Json::parse_event_t event,
                                                   Json& parsed) {
    doubled.tell(event, parsed);
    return true;
  };
  try {
    out = Json::parse(text.begin(), text.end(), no_key_twice);
  } catch (const Json::exception& e) {
    std::string what = e.what();
    if (const auto start = what.find("] "); start != std::string::npos) what.erase(0, start + 2);
    return fail("", "not JSON: " + what, "a plan is what stowage plan writes");
  }
  return doubled.pointer().empty() ||
         fail(doubled.pointer(), "the key stands twice in one object", "leave one of both out");
}

bool PlanReader::schema(const Json& document) {
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

bool PlanReader::target(const Json& json, PlanTarget& out) {
  const std::string at = "/for";
  if (!object(json, at) ||
      !known_keys(json, at,
                  {"model", "batch", "seq", "dtype", "autocast", "optimizer", "grad_scaler",
                   "device", "threads", "fingerprint", "trace_file", "trace"})) {
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
         string_of("autocast", out.autocast) && string_of("optimizer", out.optimizer) &&
         string_of("grad_scaler", out.grad_scaler) && string_of("device", out.device) &&
         number_of("threads", out.threads) && string_of("fingerprint", out.fingerprint) &&
         string_of("trace_file", out.trace_file) && string_of("trace", out.trace);
}

bool PlanReader::budget(const Json& json, PlanBudget& out) {
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
    if (!out.device && out.device_text.empty()) {
      return fail(child(at, "device_bytes"), "there is no percentage that these are the bytes of",
                  "write them as \"device\"");
    }
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

bool PlanReader::placement(const Json& json, PlacementMode& out) {
  std::size_t index = 0;
  if (!one_of(json, "/placement", {"caching", "planned"}, index)) return false;
  out = static_cast<PlacementMode>(index);
  return true;
}

bool PlanReader::predicted(const Json& json, Predicted& out) {
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

bool PlanReader::made_by(const Json& json, MadeBy& out) {
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

Result<Plan> PlanReader::read(std::string_view text) {
  Json document;
  Plan plan;
  const auto part = [&](const char* key, auto&& reader) {
    const auto found = document.find(key);
    return found == document.end() || reader(*found);
  };
  const auto all = [&] {
    if (!parse(text, document) || !object(document, "") || !schema(document)) return false;
    if (!known_keys(document, "",
                    {"schema", "for", "budget", "placement", "saved", "recompute", "parameters",
                     "gradients", "optimizer", "micro_batches", "predicted", "lower_bound", "gap",
                     "made_by"})) {
      return false;
    }
    if (!part("for", [&](const Json& json) { return target(json, plan.target); }) ||
        !part("budget", [&](const Json& json) { return budget(json, plan.budget); }) ||
        !part("placement", [&](const Json& json) { return placement(json, plan.placement); }) ||
        !part("parameters",
              [&](const Json& json) { return parameters(json, plan.parameters.emplace()); }) ||
        !part("gradients", [&](const Json& json) { return gradients(json, plan.gradients); }) ||
        !part("optimizer", [&](const Json& json) { return optimizer(json, plan.optimizer); }) ||
        !part("saved", [&](const Json& json) { return rules(json, plan.saved); }) ||
        !part("recompute",
              [&](const Json& json) { return recompute(json, "/recompute", 0, plan.recompute); }) ||
        !part("micro_batches",
              [&](const Json& json) { return micro_batches(json, plan.micro_batches); }) ||
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

}  // namespace stowage::simulator::plan_json
