#include "simulator/plan/plan_reader_json.h"

#include "simulator/plan/pattern.h"
#include "simulator/plan/program_point.h"
#include "traces/enum_names.h"
#include "traces/size_text.h"

namespace stowage::simulator::plan_json {

bool PlanReader::rule(const Json& json, const std::string& at, SavedRule& out) {
  return object(json, at) && rule_action(json, at, out) && rule_selection(json, at, out) &&
         rule_movement(json, at, out);
}

bool PlanReader::rule_action(const Json& json, const std::string& at, SavedRule& out) {
  const auto action = json.find("do");
  if (action == json.end()) {
    return known_keys(json, at,
                      {"site", "class", "op", "min_bytes", "do", "by", "release", "reload",
                       "copy_out", "copy_in", "share"}) &&
           fail(child(at, "do"), "the key \"do\" is missing",
                "\"do\": \"keep\", \"offload\" or \"recompute\"");
  }
  std::size_t index = 0;
  if (!one_of(*action, child(at, "do"), {"keep", "offload", "recompute"}, index)) return false;
  out.decision = static_cast<Decision>(index);
  if (out.decision != Decision::offload) {
    for (const char* key : {"release", "reload", "copy_out", "copy_in", "share"}) {
      if (json.contains(key)) {
        return fail(child(at, key),
                    std::string("says nothing beside \"do\": \"") + name_of(out.decision) + "\"",
                    "leave it out, or say \"do\": \"offload\"");
      }
    }
  }
  const auto by = json.find("by");
  if (out.decision == Decision::recompute) {
    if (by == json.end()) {
      return fail(child(at, "by"), "the key \"by\" is missing",
                  "\"by\": \"ops\"; segments are named under \"recompute\"");
    }
    if (*by != "ops") {
      return fail(child(at, "by"),
                  by->is_string() ? "unknown value " + in_quotes(by->get_ref<const std::string&>())
                                  : std::string("expected a string, found ") + by->type_name(),
                  "\"by\": \"ops\"; segments are named under \"recompute\"");
    }
  } else if (by != json.end()) {
    return fail(child(at, "by"), "belongs to \"do\": \"recompute\"", "leave it out");
  }
  return known_keys(json, at,
                    {"site", "class", "op", "min_bytes", "do", "by", "release", "reload",
                     "copy_out", "copy_in", "share"});
}

bool PlanReader::rule_selection(const Json& json, const std::string& at, SavedRule& out) {
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
  return true;
}

bool PlanReader::rule_movement(const Json& json, const std::string& at, SavedRule& out) {
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

bool PlanReader::rules(const Json& json, std::vector<SavedRule>& out) {
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

}  // namespace stowage::simulator::plan_json
