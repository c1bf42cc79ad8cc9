#include "simulator/step/segment_rule_writer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "simulator/plan/pattern_text.h"
#include "simulator/step/segment_row.h"
#include "simulator/step/segment_rules.h"

namespace stowage::simulator {
namespace {

using Calls = std::vector<SegmentFinder::Named>;

using Families = std::map<std::pair<std::string, std::string>, Numbers>;  // by prefix, suffix

std::pair<std::string, std::string> family_of(const std::string& name) {
  const NumberedPath parts = take_apart(name);
  return {parts.prefix, parts.suffix};
}

void add_to(Families& families, const std::string& name) {
  families[family_of(name)].insert(take_apart(name).number);
}

std::string pattern_of(const Families::value_type& family) {
  const auto& [around, numbers] = family;
  const std::string between = *numbers.begin() >= 0 ? numbers_text(numbers) : "";
  return as_pattern(around.first, Spelling::exact) + between +
         as_pattern(around.second, Spelling::exact);
}

// Of a segment of several calls, "layers.0..layers.3": by a pattern where their names differ in a
// number alone.
RecomputeRule rule_of_run(const Calls& calls, const std::string& name) {
  Families families;
  for (const SegmentFinder::Named& call : calls_in(calls, name)) add_to(families, call.name);
  RecomputeRule rule;
  if (families.size() != 1) {
    rule.segment = name;
    return rule;
  }
  rule.each = RecomputeRule::kAll;
  rule.segment = pattern_of(*families.begin());
  return rule;
}

// Segments and what lies in each.
struct Nest {
  std::string name;
  Calls calls;
  std::vector<Nest> inner;

  [[nodiscard]] bool is_run() const { return name.find(kRunOfLayers) != std::string::npos; }
};

std::vector<Nest> nests_of(const Calls& calls, const std::vector<std::string>& segments) {
  std::vector<Nest> sorted;
  for (const std::string& name : segments) sorted.push_back({name, calls_in(calls, name), {}});
  std::stable_sort(sorted.begin(), sorted.end(), [](const Nest& a, const Nest& b) {
    if (a.calls.empty() || b.calls.empty()) return a.calls.size() > b.calls.size();
    return std::pair(a.calls.front().first, b.calls.back().end) <
           std::pair(b.calls.front().first, a.calls.back().end);
  });
  std::vector<Nest> nests;
  for (Nest& nest : sorted) {
    std::vector<Nest>* in = &nests;
    while (!in->empty() && !nest.calls.empty() && !in->back().calls.empty() &&
           nest.calls.back().end <= in->back().calls.back().end) {
      in = &in->back().inner;
    }
    in->push_back(std::move(nest));
  }
  return nests;
}

// Layer calls of one family are one rule if `merged`, with one for what lies in any of them.
std::vector<RecomputeRule> rules_of(const Calls& calls, const std::vector<Nest>& nests,
                                    bool merged) {
  std::vector<RecomputeRule> rules;
  Families families;
  std::map<std::pair<std::string, std::string>, std::vector<Nest>> inner;
  for (const Nest& nest : nests) {
    if (merged && !nest.is_run()) {
      add_to(families, nest.name);
      std::vector<Nest>& all = inner[family_of(nest.name)];
      all.insert(all.end(), nest.inner.begin(), nest.inner.end());
      continue;
    }
    if (nest.is_run()) {
      rules.push_back(rule_of_run(calls, nest.name));
    } else {
      rules.emplace_back().segment = as_pattern(nest.name, Spelling::exact);
    }
    rules.back().within = rules_of(calls, nest.inner, merged);
  }
  for (const auto& family : families) {
    RecomputeRule& rule = rules.emplace_back();
    rule.segment = pattern_of(family);
    rule.within = rules_of(calls, inner[family.first], merged);
  }
  return rules;
}

}  // namespace

std::vector<RecomputeRule> recompute_rules(const Trace& recording, const Structure& structure) {
  const std::vector<std::string>& segments = structure.recompute;
  if (segments.empty()) return {};
  const Calls calls = SegmentFinder(recording).calls();
  std::vector<std::string> wanted = segments;
  std::sort(wanted.begin(), wanted.end());
  const std::vector<Nest> nests = nests_of(calls, segments);
  std::vector<RecomputeRule> rules = rules_of(calls, nests, true);
  const Result<std::vector<NamedSegment>> got = segments_named(recording, rules);
  std::vector<std::string> names;
  if (got) {
    for (const NamedSegment& each : *got) names.push_back(each.name);
  }
  std::sort(names.begin(), names.end());
  return names == wanted ? rules : rules_of(calls, nests, false);
}

}  // namespace stowage::simulator
