#include <cstdint>
#include <limits>

#include "simulator/plan/pattern.h"
#include "simulator/plan/plan_reader_json.h"

namespace stowage::simulator::plan_json {

bool PlanReader::recompute(const Json& json, std::vector<RecomputeRule>& out) {
  if (!json.is_array()) {
    return fail("/recompute", std::string("expected a list, found ") + json.type_name());
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!recompute_rule(json[i], child("/recompute", i), out.emplace_back())) return false;
  }
  return true;
}

bool PlanReader::recompute_rule(const Json& json, const std::string& at, RecomputeRule& out) {
  if (!object(json, at) || !known_keys(json, at, {"segment", "each", "boundary"})) return false;
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
      return fail(child(at, "each"), "a run of layers is one segment", "leave \"each\" out");
    }
    std::int64_t layers = 1;
    if (*each == "run") {
      layers = RecomputeRule::kAll;
    } else if (each->is_string() && *each != "layer") {
      return fail(child(at, "each"),
                  "unknown value " + in_quotes(each->get_ref<const std::string&>()),
                  "\"layer\", \"run\" or a number of layers");
    } else if (!each->is_string() && !integer(*each, child(at, "each"), 1, layers)) {
      return false;
    }
    if (layers > std::numeric_limits<std::int32_t>::max()) {
      return fail(child(at, "each"), "the number " + each->dump() + " is too large");
    }
    out.each = static_cast<std::int32_t>(layers);
  }
  const auto boundary = json.find("boundary");
  if (boundary == json.end() || *boundary == "keep") return true;
  if (*boundary != "offload") {
    return fail(child(at, "boundary"), "expected \"keep\" or \"offload\"");
  }
  out.boundary = Decision::offload;
  return true;
}

}  // namespace stowage::simulator::plan_json
