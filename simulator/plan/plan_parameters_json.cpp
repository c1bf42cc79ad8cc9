#include "simulator/plan/plan_reader_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "simulator/plan/pattern.h"

namespace stowage::simulator::plan_json {

bool PlanReader::parameters(const Json& json, ParameterPlan& out) {
  const std::string at = "/parameters";
  if (!object(json, at) || !known_keys(json, at, {"shards", "stream", "prefetch"})) return false;
  if (const auto found = json.find("shards"); found != json.end()) {
    if (!shards(*found, child(at, "shards"), out)) return false;
  }
  if (const auto found = json.find("stream"); found != json.end()) {
    if (!stream(*found, child(at, "stream"), out)) return false;
  }
  const auto prefetch = json.find("prefetch");
  if (prefetch == json.end() || *prefetch == "auto") return true;
  if (prefetch->is_string()) {
    return fail(child(at, "prefetch"),
                "unknown value " + in_quotes(prefetch->get_ref<const std::string&>()),
                "a number of shards, or \"auto\"");
  }
  std::int64_t distance = 0;
  if (!integer(*prefetch, child(at, "prefetch"), 0, distance)) return false;
  if (distance > std::numeric_limits<std::int32_t>::max()) {
    return fail(child(at, "prefetch"), "the number " + prefetch->dump() + " is too large");
  }
  out.prefetch = static_cast<std::int32_t>(distance);
  return true;
}

bool PlanReader::stream(const Json& json, const std::string& at, ParameterPlan& out) {
  StreamMode mode = StreamMode::off;
  if (!json.is_array()) {
    if (!stream_mode(json, at, mode)) return false;
    out.stream = mode;
    return true;
  }
  if (json.empty() || json.size() != out.shards.size()) {
    return fail(at,
                std::to_string(json.size()) + " values for " + std::to_string(out.shards.size()) +
                    " shards",
                "one value for all shards, or a list with one for each");
  }
  std::vector<StreamMode> modes;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!stream_mode(json[i], child(at, i), mode)) return false;
    modes.push_back(mode);
  }
  out.stream = StreamModes(std::move(modes));
  return true;
}

bool PlanReader::stream_mode(const Json& json, const std::string& at, StreamMode& out) {
  if (json.is_boolean()) {
    out = json.get<bool>() ? StreamMode::always : StreamMode::off;
  } else if (json == "forward") {
    out = StreamMode::forward;
  } else if (json == "backward") {
    out = StreamMode::backward;
  } else {
    return fail(at, "expected true, false, \"forward\" or \"backward\", found " +
                        (json.is_string() ? in_quotes(json.get_ref<const std::string&>())
                                          : std::string(json.type_name())));
  }
  return true;
}

bool PlanReader::shards(const Json& json, const std::string& at, ParameterPlan& out) {
  if (!json.is_array()) {
    return fail(at, std::string("expected a list of shards, found ") + json.type_name());
  }
  for (std::size_t s = 0; s < json.size(); ++s) {
    const std::string shard_at = child(at, s);
    if (!json[s].is_array()) {
      return fail(shard_at, std::string("expected a list of layers, found ") + json[s].type_name());
    }
    if (json[s].empty()) {
      return fail(shard_at, "the shard has no layers", "leave it out, or name its layers");
    }
    auto& shard = out.shards.emplace_back();
    for (std::size_t i = 0; i < json[s].size(); ++i) {
      std::string pattern;
      if (!text(json[s][i], child(shard_at, i), pattern)) return false;
      if (auto parsed = Pattern::parse(pattern); !parsed) {
        return fail(child(shard_at, i), parsed.error());
      }
      shard.push_back(std::move(pattern));
    }
  }
  return true;
}

bool PlanReader::micro_batches(const Json& json, std::vector<MicroBatchRule>& out) {
  const std::string pointer = "/micro_batches";
  if (!json.is_array()) {
    return fail(pointer, std::string("expected a list, found ") + json.type_name());
  }
  constexpr std::size_t kMost = 64;
  if (json.size() > kMost) {
    return fail(pointer, "more than " + std::to_string(kMost) + " segments");
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string at = child(pointer, i);
    if (!object(json[i], at) || !known_keys(json[i], at, {"segment", "count"})) return false;
    const auto segment = json[i].find("segment");
    const auto count = json[i].find("count");
    if (segment == json[i].end() || count == json[i].end()) {
      return fail(at, "a segment and a count are needed",
                  "{ \"segment\": \"head\", \"count\": 4 }");
    }
    MicroBatchRule rule;
    std::int64_t parts = 1;
    if (!text(*segment, child(at, "segment"), rule.segment) ||
        !integer(*count, child(at, "count"), 1, parts)) {
      return false;
    }
    if (parts > std::numeric_limits<std::int32_t>::max()) {
      return fail(child(at, "count"), "the number " + count->dump() + " is too large");
    }
    for (const MicroBatchRule& other : out) {
      if (other.segment != rule.segment) continue;
      return fail(child(at, "segment"), in_quotes(rule.segment) + " has a rule already");
    }
    rule.count = static_cast<std::int32_t>(parts);
    out.push_back(std::move(rule));
  }
  return true;
}

// A list of rules, each with a layer; `read` gets what else a rule says.
template <class Read>
bool PlanReader::layer_rules(const Json& json, const std::string& pointer,
                             std::initializer_list<const char*> keys, Read&& read) {
  if (!json.is_array()) {
    return fail(pointer, std::string("expected a list, found ") + json.type_name());
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string at = child(pointer, i);
    if (!object(json[i], at) || !known_keys(json[i], at, keys)) return false;
    const auto layer = json[i].find("layer");
    if (layer == json[i].end()) {
      return fail(at, "the rule names no layer", "\"layer\": \"*\" is every one");
    }
    std::string pattern;
    if (!text(*layer, child(at, "layer"), pattern)) return false;
    if (auto parsed = Pattern::parse(pattern); !parsed) {
      return fail(child(at, "layer"), parsed.error());
    }
    if (!read(json[i], at, std::move(pattern))) return false;
  }
  return true;
}

// Absent is "device".
bool PlanReader::place(const Json& rule, const std::string& at, const char* key,
                       std::initializer_list<const char*> can, std::string& out) {
  out = "device";
  const auto found = rule.find(key);
  if (found == rule.end()) return true;
  const std::string pointer = child(at, key);
  if (!text(*found, pointer, out)) return false;
  if (std::find(can.begin(), can.end(), out) != can.end()) return true;
  std::string known;
  for (const char* each : can) known += (known.empty() ? "" : ", ") + in_quotes(each);
  return fail(pointer, "unknown value " + in_quotes(out), "one of " + known);
}

bool PlanReader::optimizer(const Json& json, std::vector<OptimizerRule>& out) {
  return layer_rules(json, "/optimizer", {"layer", "state", "step"},
                     [&](const Json& rule, const std::string& at, std::string layer) {
                       std::string state;
                       std::string step;
                       if (!place(rule, at, "state", {"device", "stream", "host"}, state) ||
                           !place(rule, at, "step", {"device", "host"}, step)) {
                         return false;
                       }
                       if ((state == "host") != (step == "host")) {
                         return fail(child(at, state == "host" ? "state" : "step"),
                                     "state on the host is updated there, and no other state is",
                                     "\"state\": \"host\", \"step\": \"host\"");
                       }
                       out.push_back({std::move(layer), state == "host"     ? StatePlace::host
                                                        : state == "stream" ? StatePlace::stream
                                                                            : StatePlace::device});
                       return true;
                     });
}

bool PlanReader::gradients(const Json& json, std::vector<GradientRule>& out) {
  return layer_rules(json, "/gradients", {"layer", "place"},
                     [&](const Json& rule, const std::string& at, std::string layer) {
                       std::string where;
                       if (!place(rule, at, "place", {"device", "host"}, where)) return false;
                       out.push_back({std::move(layer), where == "host" ? GradientPlace::host
                                                                        : GradientPlace::device});
                       return true;
                     });
}

}  // namespace stowage::simulator::plan_json
