#include "simulator/plan/decisions.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/plan/program_point.h"
#include "simulator/plan/rule_match.h"
#include "simulator/plan/rule_writer.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

// In the site of what a segment is given (traces/site_text.h).
constexpr const char* kInputSite = "#in";

bool names_inputs(const SavedRule& rule) {
  return rule.site && rule.site->find(kInputSite) != std::string::npos;
}

std::string at_rule(std::size_t rule, const std::string& key = "") {
  return "/saved/" + std::to_string(rule) + key;
}

// The site that `pattern` most likely meant: by edit distance, else by the longest common
// beginning.
std::string nearest_site(const Trace& trace, const std::string& pattern) {
  std::vector<std::string> sites;
  std::set<StringId> seen;
  for (const StringId site : trace.saved.site) {
    if (seen.insert(site).second) sites.push_back(trace.string(site));
  }
  std::string near = nearest(pattern, sites);
  if (!near.empty()) return near;
  std::size_t longest = 0;
  for (const std::string& site : sites) {
    const auto common = static_cast<std::size_t>(
        std::mismatch(site.begin(), site.end(), pattern.begin(), pattern.end()).first -
        site.begin());
    if (near.empty() || common > longest) {
      near = site;
      longest = common;
    }
  }
  return near;
}

Error matches_nothing(const Trace& trace, const SavedRule& rule, std::size_t number) {
  Error error{ErrorCode::bad_input, "the rule matches no saved tensor", "", at_rule(number), ""};
  if (trace.saved.size() == 0) {
    error.hint = "the trace has no saved tensors";
    return error;
  }
  if (!rule.site) {
    error.hint = "stowage inspect lists the saved tensors";
    return error;
  }
  SavedRule only_site;
  only_site.site = rule.site;
  error.message = "the rule with site \"" + short_text(*rule.site) + "\" matches no saved tensor";
  error.pointer = at_rule(number, "/site");
  if (names_inputs(rule)) {
    if (rule.decision == Decision::recompute) {
      error.message = "what runs again is given \"" + short_text(*rule.site) +
                      "\": that is not made again by ops";
      error.hint = "keep it, or offload it";
      return error;
    }
    const std::vector<std::int32_t>& ordinal = trace.saved.ordinal;
    if (std::none_of(ordinal.begin(), ordinal.end(), [](std::int32_t o) { return o < 0; })) {
      error.hint = "only what runs again has such sites, and nothing does under this plan";
      return error;
    }
  }
  const auto matcher = RuleMatcher::make(trace, only_site);
  bool site_exists = false;
  bool site_is_older = false;
  const auto pattern = Pattern::parse(*rule.site);
  for (std::size_t i = 0; pattern && i < trace.saved.size(); ++i) {
    const bool named = pattern->matches(trace.string(trace.saved.site[i]));
    site_exists = site_exists || (named && matcher && matcher->matches(SavedId(i)));
    site_is_older = site_is_older || (named && pre_existing(trace, trace.saved.storage[i]));
  }
  if (site_exists) {
    const bool is_site_alone = rule.site && !rule.storage_class && !rule.op && !rule.min_bytes;
    error.hint = is_site_alone
                     ? "what runs again is given that; such a rule says so in its site: \"#in\" "
                       "and a number, or \"#in*\""
                     : "the site exists; class, op or min_bytes exclude it";
  } else if (site_is_older && !rule.storage_class) {
    error.hint =
        "its storage is older than the step: such a rule names its class, e.g. \"class\": "
        "\"param\"";
  } else {
    error.hint = "the nearest site is " + nearest_site(trace, *rule.site);
  }
  return error;
}

// What a rule says about one saved tensor. `layer` is where its relative points count from.
Result<SavedDecision> decide(const Trace& trace, const SavedRule& rule, std::size_t number,
                             LayerId layer) {
  SavedDecision decision;
  decision.rule = static_cast<std::int32_t>(number);
  decision.decision = rule.decision;
  if (rule.decision != Decision::offload) return decision;
  decision.release = rule.release;
  decision.reload = rule.reload;
  decision.copy_out = rule.copy_out;
  decision.copy_in = rule.copy_in;
  decision.share = rule.share;
  if (rule.release.kind == ReleasePoint::Kind::point) {
    auto point = absolute_point(trace, rule.release.point, layer);
    if (!point) {
      Error error = point.error();
      error.pointer = at_rule(number, "/release");
      return error;
    }
    decision.release.point = std::move(point).value();
  }
  if (rule.reload.kind == ReloadPoint::Kind::point) {
    auto point = absolute_point(trace, rule.reload.point, layer);
    if (!point) {
      Error error = point.error();
      error.pointer = at_rule(number, "/reload");
      return error;
    }
    decision.reload.point = std::move(point).value();
  }
  return decision;
}

// Of what segments of a rule are given.
struct Boundary {
  Pattern pattern;
  std::optional<Decision> decision;
};

// What its segment's rule says of it, an input of that.
std::optional<Decision> boundary_of(const Trace& trace, const std::vector<Boundary>& boundaries,
                                    SavedId saved) {
  if (trace.saved.ordinal[saved.index()] >= 0) return std::nullopt;
  if (pre_existing(trace, trace.saved.storage[saved.index()])) return std::nullopt;
  const std::string& layer =
      trace.string(trace.layers.name[trace.saved.layer[saved.index()].index()]);
  const std::string call = layer + "@" + std::to_string(trace.saved.call[saved.index()]);
  for (const Boundary& each : boundaries) {
    if (each.pattern.matches(layer) || each.pattern.matches(call)) return each.decision;
  }
  return std::nullopt;
}

}  // namespace

Result<Decisions> resolve(const Trace& trace, const Plan& plan) {
  std::vector<RuleMatcher> matchers;
  for (std::size_t rule = 0; rule < plan.saved.size(); ++rule) {
    auto matcher = RuleMatcher::make(trace, plan.saved[rule]);
    if (!matcher) {
      Error error = matcher.error();
      error.pointer = at_rule(rule, error.pointer);
      return error;
    }
    matchers.push_back(std::move(matcher).value());
  }

  std::vector<Boundary> boundaries;
  for (const RecomputeRule& rule : plan.recompute) {
    // What a row of layers is given, its first one is.
    auto pattern = Pattern::parse(rule.segment.substr(0, rule.segment.find("..")));
    if (pattern) boundaries.push_back({std::move(pattern).value(), rule.boundary});
  }

  Decisions decisions;
  decisions.budget = plan.budget.automatic ? plan.budget.automatic : plan.budget.device;
  decisions.saved.resize(trace.saved.size());
  std::vector<bool> used(plan.saved.size(), false);
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    bool decided = false;
    const bool is_input = trace.saved.ordinal[i] < 0;
    const std::optional<Decision> boundary = boundary_of(trace, boundaries, SavedId(i));
    for (std::size_t rule = 0; rule < plan.saved.size(); ++rule) {
      // A rule that is shadowed by earlier ones still counts as matching.
      if ((decided && used[rule]) || !matchers[rule].matches(SavedId(i))) continue;
      // What a segment is given is there for that.
      if (is_input && plan.saved[rule].decision == Decision::recompute) continue;
      if (boundary && !names_inputs(plan.saved[rule])) continue;
      used[rule] = true;
      if (decided) continue;
      decided = true;
      auto decision = decide(trace, plan.saved[rule], rule, trace.saved.layer[i]);
      if (!decision) return decision.error();
      decisions.saved[i] = std::move(decision).value();
    }
    if (!decided && boundary) decisions.saved[i].decision = *boundary;
  }
  for (std::size_t rule = 0; rule < plan.saved.size(); ++rule) {
    if (!used[rule] && !matchers[rule].matches_everything()) {
      return matches_nothing(trace, plan.saved[rule], rule);
    }
  }
  if (plan.parameters) {
    auto parameters = resolve_parameters(trace, *plan.parameters);
    if (!parameters) return parameters.error();
    decisions.parameters = std::move(parameters).value();
  }
  auto optimizer = resolve_optimizer(trace, plan.optimizer);
  if (!optimizer) return optimizer.error();
  decisions.optimizer = std::move(optimizer).value();
  auto gradients = resolve_gradients(trace, plan.gradients);
  if (!gradients) return gradients.error();
  decisions.gradients = std::move(gradients).value();
  return decisions;
}

std::vector<std::size_t> shadowed_rules(const Trace& trace, const Plan& plan) {
  const auto decisions = resolve(trace, plan);
  if (!decisions) return {};
  std::vector<bool> decides(plan.saved.size(), false);
  for (const SavedDecision& decision : decisions->saved) {
    if (decision.rule >= 0) decides[static_cast<std::size_t>(decision.rule)] = true;
  }
  std::vector<std::size_t> shadowed;
  for (std::size_t i = 0; i < plan.saved.size(); ++i) {
    if (decides[i]) continue;
    const auto matcher = RuleMatcher::make(trace, plan.saved[i]);
    const bool is_rest =
        plan.saved[i].decision == Decision::keep && matcher && matcher->matches_everything();
    if (!is_rest) shadowed.push_back(i);
  }
  return shadowed;
}

std::vector<SavedRule> to_rules(const Trace& trace, const Decisions& decisions,
                                const std::vector<bool>& owned) {
  const auto is_owned = [&](std::size_t i) { return !owned.empty() && owned[i]; };
  STOWAGE_ASSERT(decisions.saved.size() == trace.saved.size());
  const auto wanted = [&](std::size_t i) {
    SavedDecision decision = decisions.saved[i];
    // What does not leave has no points and modes: they say nothing.
    if (decision.decision != Decision::offload) {
      decision = SavedDecision{};
      decision.decision = decisions.saved[i].decision;
    }
    decision.rule = -1;
    return decision;
  };
  const auto gives_back = [&](const std::vector<SavedRule>& rules) {
    Plan plan;
    plan.saved = rules;
    const auto resolved = resolve(trace, plan);
    if (!resolved) return false;
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      if (is_owned(i)) continue;
      SavedDecision got = resolved->saved[i];
      got.rule = -1;
      if (!(got == wanted(i))) return false;
    }
    return true;
  };

  std::vector<SavedRule> best;
  for (const bool relative : {false, true}) {
    RuleWriter writer(trace, Spelling::loose);
    RuleWriter exact_writer(trace, Spelling::exact);
    bool has_points = false;
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      if (is_owned(i)) continue;
      SavedDecision decision = wanted(i);
      const LayerId layer = trace.saved.layer[i];
      if (decision.release.kind == ReleasePoint::Kind::point) {
        has_points = true;
        if (relative) {
          decision.release.point = relative_point(trace, decision.release.point, layer);
        }
      }
      if (decision.reload.kind == ReloadPoint::Kind::point) {
        has_points = true;
        if (relative) decision.reload.point = relative_point(trace, decision.reload.point, layer);
      }
      exact_writer.add(SavedId(i), decision);
      writer.add(SavedId(i), std::move(decision));
    }
    for (const RuleWriter* each : {&writer, &exact_writer}) {
      std::vector<SavedRule> rules = each->rules();
      if ((best.empty() || rules.size() < best.size()) && gives_back(rules)) {
        best = std::move(rules);
        break;
      }
    }
    if (!has_points) break;
  }
  // Layers of one pattern and several decisions come to this.
  for (const Spelling spelling : {Spelling::loose, Spelling::exact}) {
    if (!best.empty()) break;
    RuleWriter writer(trace, spelling);
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      if (!is_owned(i)) writer.add(SavedId(i), wanted(i));
    }
    std::vector<SavedRule> rules = writer.rules_one_by_one();
    if (gives_back(rules)) best = std::move(rules);
  }
  // Sites are unique (traces/validate.h), so exact names say everything.
  STOWAGE_ASSERT(!best.empty());
  return best;
}

}  // namespace stowage::simulator
