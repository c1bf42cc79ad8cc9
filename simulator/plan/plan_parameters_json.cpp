#include "simulator/plan/plan_reader_json.h"

#include <cstdint>
#include <limits>

#include "simulator/plan/pattern.h"

namespace stowage::simulator::plan_json {

bool PlanReader::parameters(const Json& json, ParameterPlan& out) {
  const std::string at = "/parameters";
  if (!object(json, at) || !known_keys(json, at, {"shards", "stream", "prefetch"})) return false;
  if (const auto found = json.find("shards"); found != json.end()) {
    if (!shards(*found, child(at, "shards"), out)) return false;
  }
  if (const auto found = json.find("stream"); found != json.end()) {
    if (found->is_boolean()) {
      out.stream = found->get<bool>() ? ParameterPlan::Stream::always : ParameterPlan::Stream::off;
    } else if (*found == "forward") {
      out.stream = ParameterPlan::Stream::forward;
    } else {
      return fail(child(at, "stream"),
                  "expected true, false or \"forward\", found " +
                      (found->is_string() ? in_quotes(found->get_ref<const std::string&>())
                                          : std::string(found->type_name())));
    }
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

// Parts that Stowage cannot run yet may be present as long as they ask for nothing.
bool PlanReader::unsupported(const Json& document) {
  const auto refuse = [&](const std::string& pointer) {
    return fail(pointer, "not supported yet", "leave this part out");
  };
  for (const char* key : {"micro_batches"}) {
    const auto found = document.find(key);
    if (found == document.end()) continue;
    const std::string at = child("", key);
    if (!found->is_array()) {
      return fail(at, std::string("expected a list, found ") + found->type_name());
    }
    for (std::size_t i = 0; i < found->size(); ++i) {
      const Json& item = (*found)[i];
      const bool nothing = item.is_object() && item.contains("count") && item["count"] == 1;
      if (!nothing) return refuse(child(at, i));
    }
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

}  // namespace stowage::simulator::plan_json
