#include "simulator/step/plan_structure.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/plan/rule_match.h"
#include "simulator/plan/rule_writer.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/segments.h"
#include "simulator/step/unroll.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

using Call = SegmentFinder::Named;

bool overlap(const Call& a, const Call& b) {
  return a.first < b.end && b.first < a.end;
}

// The outermost calls that a pattern names and that no earlier rule has. `names` any: it names
// some.
std::vector<Call> calls_of(const std::vector<Call>& calls, const Pattern& pattern,
                           const std::vector<Call>& taken, bool& names_any) {
  std::vector<Call> mine;
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
std::vector<Call> calls_between(const std::vector<Call>& calls, const std::string& first,
                                const std::string& last) {
  std::vector<Call> run;
  for (const Call& call : calls) {
    const bool is_next = run.empty() ? call.name == first : run.back().end <= call.first;
    if (!is_next) continue;
    run.push_back(call);
    if (call.name == last) return run;
  }
  return {};
}

// Of a rule that names a run: its calls. Pointers of errors are `at`'s.
Result<std::vector<Call>> run_of(const std::vector<Call>& calls, const RecomputeRule& rule,
                                 const std::vector<Call>& taken, const std::string& at) {
  const std::size_t dots = rule.segment.find(kRunOfLayers);
  const std::string first = rule.segment.substr(0, dots);
  const std::string last = rule.segment.substr(dots + kRunOfLayers.size());
  std::vector<Call> run = calls_between(calls, first, last);
  const auto error = [&](const std::string& text, const std::string& hint) {
    return Error{ErrorCode::bad_input, "the run \"" + rule.segment + "\" " + text, "",
                 at + "/segment", hint};
  };
  if (run.size() < 2) {
    return error("is no row of layer calls: it needs the names of the first and of a later one",
                 "stowage inspect --by layer lists the layers");
  }
  for (const Call& call : run) {
    for (const Call& other : taken) {
      if (overlap(call, other)) {
        return error("has '" + call.name + "', which an earlier rule names",
                     "leave one of both out");
      }
    }
  }
  return run;
}

Error names_nothing(const std::vector<Call>& calls, const RecomputeRule& rule,
                    const std::string& at) {
  std::vector<std::string> names;
  for (const Call& call : calls) names.push_back(call.name);
  const std::string near = nearest(rule.segment, names);
  return {ErrorCode::bad_input, "the segment \"" + rule.segment + "\" names no layer call", "",
          at + "/segment",
          near.empty() ? "stowage inspect --by layer lists the layers"
                       : "the nearest layer is " + near};
}

using Families = std::map<std::pair<std::string, std::string>, Numbers>;  // by prefix, suffix

void add_to(Families& families, const std::string& name) {
  const NumberedPath parts = take_apart(name);
  families[{parts.prefix, parts.suffix}].insert(parts.number);
}

std::string pattern_of(const Families::value_type& family) {
  const auto& [around, numbers] = family;
  const std::string between = *numbers.begin() >= 0 ? numbers_text(numbers) : "";
  return as_pattern(around.first, Spelling::exact) + between +
         as_pattern(around.second, Spelling::exact);
}

// Of a segment of several calls, "layers.0..layers.3": by a pattern where their names differ in a
// number alone.
RecomputeRule rule_of_run(const std::vector<Call>& calls, const std::string& name) {
  const std::size_t dots = name.find(kRunOfLayers);
  Families families;
  for (const Call& call :
       calls_between(calls, name.substr(0, dots), name.substr(dots + kRunOfLayers.size()))) {
    add_to(families, call.name);
  }
  RecomputeRule rule;
  if (families.size() != 1) {
    rule.segment = name;
    return rule;
  }
  rule.each = RecomputeRule::kAll;
  rule.segment = pattern_of(*families.begin());
  return rule;
}

// Sites whose first rule recomputes them.
Result<std::vector<std::string>> sites_by_ops(const Trace& recording, const Plan& plan) {
  std::vector<std::string> sites;
  const auto recomputes = [](const SavedRule& rule) {
    return rule.decision == Decision::recompute;
  };
  const auto last = std::find_if(plan.saved.rbegin(), plan.saved.rend(), recomputes);
  if (last == plan.saved.rend()) return sites;
  // Rules may name what the recording alone does not have (inputs of segments), so that those that
  // do not recompute only take from those that do.
  std::vector<RuleMatcher> matchers;
  for (std::size_t r = 0; r < plan.saved.size(); ++r) {
    Result<RuleMatcher> matcher = RuleMatcher::make(recording, plan.saved[r]);
    if (!matcher) {
      Error error = std::move(matcher).error();
      error.pointer = "/saved/" + std::to_string(r) + error.pointer;
      return error;
    }
    matchers.push_back(std::move(matcher).value());
  }
  std::vector<bool> matches_some(plan.saved.size(), false);
  for (std::size_t s = 0; s < recording.saved.size(); ++s) {
    bool is_decided = false;
    for (std::size_t r = 0; r < matchers.size(); ++r) {
      if (!matchers[r].matches(SavedId(s))) continue;
      matches_some[r] = true;
      if (!is_decided && recomputes(plan.saved[r])) {
        sites.push_back(recording.string(recording.saved.site[s]));
      }
      is_decided = true;
    }
  }
  for (std::size_t r = 0; r < plan.saved.size(); ++r) {
    if (matches_some[r] || !recomputes(plan.saved[r])) continue;
    Plan alone;
    alone.saved = {plan.saved[r]};
    Result<Decisions> decisions = resolve(recording, alone);
    if (decisions) continue;  // "*" of a recording that saves nothing
    Error error = std::move(decisions).error();
    error.pointer.replace(0, std::string("/saved/0").size(), "/saved/" + std::to_string(r));
    return error;
  }
  return sites;
}

}  // namespace

Result<Structure> structure_of(const Trace& recording, const Plan& plan) {
  Structure structure;
  Result<std::vector<std::string>> sites = sites_by_ops(recording, plan);
  if (!sites) return std::move(sites).error();
  structure.ops = std::move(sites).value();
  if (plan.recompute.empty()) return structure;
  const std::vector<Call> calls = SegmentFinder(recording).calls();
  std::vector<Call> taken;
  for (std::size_t r = 0; r < plan.recompute.size(); ++r) {
    const RecomputeRule& rule = plan.recompute[r];
    const std::string at = "/recompute/" + std::to_string(r);
    if (rule.segment.find(kRunOfLayers) != std::string::npos) {
      const Result<std::vector<Call>> run = run_of(calls, rule, taken, at);
      if (!run) return run.error();
      structure.recompute.push_back(rule.segment);
      taken.insert(taken.end(), run->begin(), run->end());
      continue;
    }
    auto pattern = Pattern::parse(rule.segment);
    if (!pattern) return std::move(pattern).error();
    bool names_any = false;
    const std::vector<Call> mine = calls_of(calls, *pattern, taken, names_any);
    if (!names_any) return names_nothing(calls, rule, at);
    const std::size_t each = rule.each == RecomputeRule::kAll
                                 ? std::max<std::size_t>(mine.size(), 1)
                                 : static_cast<std::size_t>(rule.each);
    for (std::size_t i = 0; i < mine.size(); i += each) {
      const std::size_t last = std::min(i + each, mine.size()) - 1;
      structure.recompute.push_back(i == last ? mine[i].name
                                              : mine[i].name + kRunOfLayers + mine[last].name);
    }
    taken.insert(taken.end(), mine.begin(), mine.end());
  }
  return structure;
}

std::vector<RecomputeRule> recompute_rules(const Trace& recording, const Structure& structure) {
  const auto gives_back = [&](const std::vector<RecomputeRule>& rules) {
    Plan plan;
    plan.recompute = rules;
    Result<Structure> got = structure_of(recording, plan);
    if (!got) return false;
    std::vector<std::string> names = structure.recompute;
    std::sort(names.begin(), names.end());
    std::sort(got->recompute.begin(), got->recompute.end());
    return names == got->recompute;
  };
  Families families;
  std::vector<RecomputeRule> rules;
  std::vector<RecomputeRule> one_by_one;
  std::vector<Call> calls;
  for (const std::string& name : structure.recompute) {
    if (name.find(kRunOfLayers) == std::string::npos) {
      add_to(families, name);
      one_by_one.emplace_back().segment = as_pattern(name, Spelling::exact);
      continue;
    }
    if (calls.empty()) calls = SegmentFinder(recording).calls();
    rules.push_back(rule_of_run(calls, name));
    one_by_one.push_back(rules.back());
  }
  for (const auto& family : families) rules.emplace_back().segment = pattern_of(family);
  return gives_back(rules) ? rules : one_by_one;
}

std::vector<SavedRule> op_rules(const Trace& recording, const Structure& structure) {
  if (structure.ops.empty()) return {};
  std::vector<std::string> names = structure.ops;
  std::sort(names.begin(), names.end());
  const auto gives_back = [&](const std::vector<SavedRule>& rules) {
    Plan plan;
    plan.saved = rules;
    Result<Structure> got = structure_of(recording, plan);
    if (!got) return false;
    std::sort(got->ops.begin(), got->ops.end());
    return names == got->ops;
  };
  for (const Spelling spelling : {Spelling::loose, Spelling::exact}) {
    RuleWriter writer(recording, spelling);
    for (std::size_t s = 0; s < recording.saved.size(); ++s) {
      const std::string& site = recording.string(recording.saved.site[s]);
      SavedDecision decision;
      if (std::binary_search(names.begin(), names.end(), site)) {
        decision.decision = Decision::recompute;
      }
      writer.add(SavedId(s), decision);
    }
    std::vector<SavedRule> rules = writer.rules_unless_kept();
    if (gives_back(rules)) return rules;
  }
  std::vector<SavedRule> one_by_one;
  for (const std::string& name : names) {
    SavedRule& rule = one_by_one.emplace_back();
    rule.site = as_pattern(name, Spelling::exact);
    rule.decision = Decision::recompute;
  }
  return one_by_one;
}

Structure structure_of(const Step& step) {
  Structure structure;
  const Trace& trace = step.trace();
  for (const SegmentRows& segment : step.segments()) {
    if (!segment.is_chain()) {
      structure.recompute.push_back(segment.name);
      continue;
    }
    for (const SavedId saved : segment.saved) {
      structure.ops.push_back(trace.string(trace.saved.site[saved.index()]));
    }
  }
  return structure;
}

Result<Step> unroll(const Trace& recording, const Plan& plan) {
  Result<Structure> structure = structure_of(recording, plan);
  if (!structure) return std::move(structure).error();
  Result<Step> step = unroll(recording, *structure);
  if (step || !step.error().pointer.empty()) return step;
  Error error = std::move(step).error();
  error.pointer = structure->recompute.empty() ? "/saved" : "/recompute";
  return error;
}

}  // namespace stowage::simulator
