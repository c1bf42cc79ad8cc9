#include "simulator/step/segment_rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

using Call = SegmentFinder::Named;
using Calls = std::vector<Call>;

bool overlap(const Call& a, const Call& b) {
  return a.first < b.end && b.first < a.end;
}

// The outermost calls that a pattern names and that no earlier rule has. `names` any: it names
// some.
Calls calls_of(const Calls& calls, const Pattern& pattern, const Calls& taken, bool& names_any) {
  Calls mine;
  for (const Call& call : calls) {
    const bool is_named = pattern.matches(call.name) || pattern.matches(call.layer);
    names_any = names_any || is_named;
    const auto overlaps = [&](const Call& other) { return overlap(call, other); };
    const bool is_free = std::none_of(taken.begin(), taken.end(), overlaps) &&
                         std::none_of(mine.begin(), mine.end(), overlaps);
    if (is_named && is_free) mine.push_back(call);
  }
  return mine;
}

// From the first call that is named `first` to the next one that is named `last`; without that,
// empty.
Calls calls_between(const Calls& calls, const std::string& first, const std::string& last) {
  Calls run;
  for (const Call& call : calls) {
    const bool is_next = run.empty() ? call.name == first : run.back().end <= call.first;
    if (!is_next) continue;
    run.push_back(call);
    if (call.name == last) return run;
  }
  return {};
}

// What can lie in a segment of these calls: all within them, and each of several.
Calls calls_within(const Calls& all, const Calls& segment) {
  Calls within;
  for (const Call& call : all) {
    const bool is_inside = segment.front().first <= call.first && call.end <= segment.back().end;
    const bool is_all = segment.size() == 1 && call.first == segment.front().first;
    if (is_inside && !is_all) within.push_back(call);
  }
  return within;
}

Error names_nothing(const std::vector<Calls>& places, const RecomputeRule& rule,
                    const std::string& at) {
  std::vector<std::string> names;
  for (const Calls& calls : places) {
    for (const Call& call : calls) names.push_back(call.name);
  }
  const std::string near = nearest(rule.segment, names);
  return {ErrorCode::bad_input, "the segment \"" + rule.segment + "\" names no layer call", "",
          at + "/segment",
          near.empty() ? "stowage inspect --by layer lists the layers"
                       : "the nearest layer is " + near};
}

// Of a rule that names a run: its calls, if they are in this place.
Result<Calls> run_of(const Calls& calls, const RecomputeRule& rule, const Calls& taken,
                     const std::string& at) {
  Calls run = calls_in(calls, rule.segment);
  for (const Call& call : run) {
    for (const Call& other : taken) {
      if (!overlap(call, other)) continue;
      return Error{
          ErrorCode::bad_input,
          "the run \"" + rule.segment + "\" has '" + call.name + "', which an earlier rule names",
          "", at + "/segment", "leave one of both out"};
    }
  }
  if (run.size() < 2) run.clear();
  return run;
}

// The segments of rules that each look at the same calls: all of a recording, or those within
// each segment of the rule around them.
class Names {
 public:
  Status add(const std::vector<Calls>& places, const std::vector<RecomputeRule>& rules,
             const std::string& at) {
    std::vector<Calls> taken(places.size());
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (Status status = add(places, rules[r], at + "/" + std::to_string(r), taken); !status) {
        return status;
      }
    }
    return Unit{};
  }
  std::vector<std::string> names;

 private:
  Status add(const std::vector<Calls>& places, const RecomputeRule& rule, const std::string& at,
             std::vector<Calls>& taken) {
    const bool is_run = rule.segment.find(kRunOfLayers) != std::string::npos;
    bool names_any = false;
    std::vector<Calls> segments;  // of all places
    std::vector<Calls> inside;    // by segment
    for (std::size_t p = 0; p < places.size(); ++p) {
      Result<std::vector<Calls>> found = is_run ? run(places[p], rule, taken[p], at)
                                                : groups(places[p], rule, taken[p], names_any);
      if (!found) return std::move(found).error();
      for (Calls& segment : *found) {
        taken[p].insert(taken[p].end(), segment.begin(), segment.end());
        inside.push_back(calls_within(places[p], segment));
        segments.push_back(std::move(segment));
      }
    }
    if (is_run && segments.empty()) {
      return Error{ErrorCode::bad_input,
                   "the run \"" + rule.segment +
                       "\" is no row of layer calls: it needs the names of the first and of a "
                       "later one",
                   "", at + "/segment", "stowage inspect --by layer lists the layers"};
    }
    if (!is_run && !names_any) return names_nothing(places, rule, at);
    for (const Calls& segment : segments) {
      names.push_back(segment.size() == 1
                          ? segment.front().name
                          : segment.front().name + kRunOfLayers + segment.back().name);
    }
    return add(inside, rule.within, at + "/within");
  }

  static Result<std::vector<Calls>> run(const Calls& calls, const RecomputeRule& rule,
                                        const Calls& taken, const std::string& at) {
    Result<Calls> run = run_of(calls, rule, taken, at);
    if (!run) return std::move(run).error();
    std::vector<Calls> segments;
    if (!run->empty()) segments.push_back(std::move(*run));
    return segments;
  }

  static Result<std::vector<Calls>> groups(const Calls& calls, const RecomputeRule& rule,
                                           const Calls& taken, bool& names_any) {
    const auto pattern = Pattern::parse(rule.segment);
    if (!pattern) return pattern.error();
    const Calls mine = calls_of(calls, *pattern, taken, names_any);
    const std::size_t each = rule.each == RecomputeRule::kAll
                                 ? std::max<std::size_t>(mine.size(), 1)
                                 : static_cast<std::size_t>(rule.each);
    std::vector<Calls> segments;
    for (std::size_t i = 0; i < mine.size(); i += each) {
      const std::size_t end = std::min(i + each, mine.size());
      segments.emplace_back(mine.begin() + static_cast<std::ptrdiff_t>(i),
                            mine.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return segments;
  }
};

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
  for (const Call& call : calls_in(calls, name)) add_to(families, call.name);
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

std::vector<SegmentFinder::Named> calls_in(const std::vector<SegmentFinder::Named>& calls,
                                           const std::string& segment) {
  const std::size_t dots = segment.find(kRunOfLayers);
  if (dots == std::string::npos) return calls_between(calls, segment, segment);
  return calls_between(calls, segment.substr(0, dots), segment.substr(dots + kRunOfLayers.size()));
}

Result<std::vector<std::string>> segments_named(const Trace& recording,
                                                const std::vector<RecomputeRule>& rules) {
  if (rules.empty()) return std::vector<std::string>();
  Names names;
  const std::vector<Calls> places = {SegmentFinder(recording).calls()};
  if (Status status = names.add(places, rules, "/recompute"); !status) return status.error();
  return std::move(names.names);
}

std::vector<RecomputeRule> recompute_rules(const Trace& recording, const Structure& structure) {
  const std::vector<std::string>& segments = structure.recompute;
  if (segments.empty()) return {};
  const Calls calls = SegmentFinder(recording).calls();
  std::vector<std::string> wanted = segments;
  std::sort(wanted.begin(), wanted.end());
  const std::vector<Nest> nests = nests_of(calls, segments);
  std::vector<RecomputeRule> rules = rules_of(calls, nests, true);
  Result<std::vector<std::string>> got = segments_named(recording, rules);
  if (got) std::sort(got->begin(), got->end());
  return got && *got == wanted ? rules : rules_of(calls, nests, false);
}

}  // namespace stowage::simulator
