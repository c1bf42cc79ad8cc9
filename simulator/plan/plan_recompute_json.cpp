#include <cstdint>
#include <limits>
#include <string>

#include "simulator/plan/pattern.h"
#include "simulator/plan/plan_reader_json.h"

namespace stowage::simulator::plan_json {

namespace {
constexpr std::int32_t kDeepest = 8;  // no model has more layers within each other that matter
}

bool PlanReader::recompute(const Json& json, const std::string& pointer, std::int32_t depth,
                           std::vector<RecomputeRule>& out) {
  if (!json.is_array()) {
    return fail(pointer, std::string("expected a list, found ") + json.type_name());
  }
  if (depth > kDeepest) {
    return fail(pointer,
                "segments lie within each other more than " + std::to_string(kDeepest) + " times");
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!recompute_rule(json[i], child(pointer, i), depth, out.emplace_back())) return false;
  }
  return true;
}

bool PlanReader::recompute_rule(const Json& json, const std::string& at, std::int32_t depth,
                                RecomputeRule& out) {
  if (!object(json, at) || !known_keys(json, at, {"segment", "each", "boundary", "within"})) {
    return false;
  }
  const auto segment = json.find("segment");
  if (segment == json.end()) {
    return fail(at, "the rule names no segment", "\"segment\": a pattern of layers");
  }
  if (!text(*segment, child(at, "segment"), out.segment)) return false;
  if (auto parsed = Pattern::parse(out.segment); !parsed) {
    return fail(child(at, "segment"), parsed.error());
  }
  if (const auto each = json.find("each"); each != json.end()) {
    if (out.segment.find("..") != std::string::npos) {
      return fail(child(at, "each"), "a row of layers is one segment", "leave \"each\" out");
    }
    std::int64_t layers = 1;
    if (*each == "run") {
      layers = RecomputeRule::kAll;
    } else if (each->is_string() && *each != "layer") {
      return fail(child(at, "each"),
                  "unknown value " + in_quotes(each->get_ref<const std::string&>()),
                  "\"layer\", \"run\" or a number of layers");
    } else if (!each->is_string() && !each->is_number()) {
      return fail(child(at, "each"), std::string("expected a number, found ") + each->type_name(),
                  "\"layer\", \"run\" or a number of layers");
    } else if (each->is_number() && !integer(*each, child(at, "each"), 1, layers)) {
      return false;
    }
    if (layers > std::numeric_limits<std::int32_t>::max()) {
      return fail(child(at, "each"), "the number " + each->dump() + " is too large");
    }
    out.each = static_cast<std::int32_t>(layers);
  }
  if (const auto of = json.find("boundary"); of != json.end()) {
    if (!boundary(*of, child(at, "boundary"), depth, out)) return false;
  }
  const auto within = json.find("within");
  return within == json.end() || recompute(*within, child(at, "within"), depth + 1, out.within);
}

bool PlanReader::boundary(const Json& json, const std::string& at, std::int32_t depth,
                          RecomputeRule& out) {
  std::size_t which = 0;
  if (!one_of(json, at, {"keep", "offload"}, which)) return false;
  if (which == 0) {
    out.boundary = Decision::keep;
    return true;
  }
  if (depth > 0) {
    return fail(at, "what a segment within another is given stays: the other one's run makes it",
                "leave \"boundary\" out");
  }
  out.boundary = Decision::offload;
  return true;
}

}  // namespace stowage::simulator::plan_json
