#include "simulator/step/plan_structure.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/plan/rule_match.h"
#include "simulator/plan/rule_writer.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/segment_rules.h"
#include "simulator/step/unroll.h"

namespace stowage::simulator {
namespace {

// Of a PlanTarget or a Run.
template <class Step>
std::string described(const Step& step) {
  std::string text = step.model.empty() ? "an unnamed model" : step.model;
  if (step.batch > 0) text += ", batch " + std::to_string(step.batch);
  if (!step.dtype.empty()) text += ", " + step.dtype;
  if (!step.autocast.empty()) text += ", autocast to " + step.autocast;
  return text;
}

std::string saved_rule(std::size_t rule) {
  return "/saved/" + std::to_string(rule);
}

// Sites whose first rule recomputes them.
struct SitesByOps {
  std::vector<std::string> sites;
  std::vector<std::string> rules;  // by site: "/saved/3"
};

Result<SitesByOps> sites_by_ops(const Trace& recording, const Plan& plan) {
  SitesByOps by_ops;
  const auto recomputes = [](const SavedRule& rule) {
    return rule.decision == Decision::recompute;
  };
  const auto last = std::find_if(plan.saved.rbegin(), plan.saved.rend(), recomputes);
  if (last == plan.saved.rend()) return by_ops;
  // Rules may name what the recording alone does not have (inputs of segments), so that those that
  // do not recompute only take from those that do.
  std::vector<RuleMatcher> matchers;
  for (std::size_t r = 0; r < plan.saved.size(); ++r) {
    Result<RuleMatcher> matcher = RuleMatcher::make(recording, plan.saved[r]);
    if (!matcher) {
      Error error = std::move(matcher).error();
      error.pointer = saved_rule(r) + error.pointer;
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
        by_ops.sites.push_back(recording.string(recording.saved.site[s]));
        by_ops.rules.push_back(saved_rule(r));
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
    error.pointer.replace(0, saved_rule(0).size(), saved_rule(r));
    return error;
  }
  return by_ops;
}

// A plan's structure, and which rules name its entries.
struct RuledStructure {
  const Trace* recording = nullptr;  // of the step in the plan's micro-batches
  Structure structure;
  std::map<std::string, std::string> rules;  // by entry: "/recompute/3" or "/ops/0"
};

Result<RuledStructure> ruled_structure(const Trace& recorded, const Plan& plan) {
  RuledStructure ruled;
  ruled.structure.parts = parts_of(plan);
  Result<const Trace*> in_parts = recording_in_parts(recorded, ruled.structure.parts);
  if (!in_parts) {
    Error error = std::move(in_parts).error();
    error.pointer = "/micro_batches";
    return error;
  }
  ruled.recording = *in_parts;
  const std::vector<Structure::Parts> recorded_in = recorded_parts(**in_parts);
  for (std::size_t k = 0; k < plan.micro_batches.size(); ++k) {
    const MicroBatchRule& rule = plan.micro_batches[k];
    const bool is_divided = rule.count == 1 && std::any_of(recorded_in.begin(), recorded_in.end(),
                                                           [&](const auto& each) {
                                                             return each.segment == rule.segment;
                                                           });
    if (!is_divided) continue;
    return Error{ErrorCode::bad_input, "the recording has '" + rule.segment + "' in micro-batches",
                 "", "/micro_batches/" + std::to_string(k),
                 "plan from a recording of the step at once"};
  }
  const Trace& recording = *ruled.recording;
  Result<SitesByOps> sites = sites_by_ops(recording, plan);
  if (!sites) return std::move(sites).error();
  for (std::size_t k = 0; k < sites->sites.size(); ++k) {
    ruled.rules["/ops/" + std::to_string(k)] = std::move(sites->rules[k]);
  }
  ruled.structure.ops = std::move(sites->sites);
  Result<std::vector<NamedSegment>> segments = segments_named(recording, plan.recompute);
  if (!segments) return std::move(segments).error();
  for (NamedSegment& segment : *segments) {
    const std::string entry = "/recompute/" + std::to_string(ruled.structure.recompute.size());
    ruled.rules[entry] = std::move(segment.rule);
    ruled.structure.recompute.push_back(std::move(segment.name));
  }
  Result<OptimizerDecisions> optimizer = resolve_optimizer(recording, plan.optimizer);
  if (!optimizer) return std::move(optimizer).error();
  ruled.structure.host_updates = host_updates(recording, optimizer->updated_on_host);
  return ruled;
}

}  // namespace

std::vector<Structure::Parts> parts_of(const Plan& plan) {
  std::vector<Structure::Parts> parts;
  for (const MicroBatchRule& rule : plan.micro_batches) {
    if (rule.count > 1) parts.push_back({rule.segment, rule.count});
  }
  return parts;
}

Status check_fingerprint(const Plan& plan, const Trace& recording) {
  const PlanTarget& target = plan.target;
  if (target.fingerprint.empty() || target.fingerprint == recording.fingerprint) return Unit{};
  return Error{ErrorCode::bad_input,
               "the plan was made for " + described(target) + "; the trace is of " +
                   described(recording.run) + " and saves other tensors",
               "", "/for/fingerprint", "plan again from this trace"};
}

Result<Structure> structure_of(const Trace& recording, const Plan& plan) {
  Result<RuledStructure> ruled = ruled_structure(recording, plan);
  if (!ruled) return std::move(ruled).error();
  return std::move(ruled->structure);
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
  structure.parts = recorded_parts(step.recording());
  structure.host_updates = step.host_updates();
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
  if (Status fits = check_fingerprint(plan, recording); !fits) return std::move(fits).error();
  const Result<RuledStructure> ruled = ruled_structure(recording, plan);
  if (!ruled) return ruled.error();
  Result<Step> step = unroll(recording, ruled->structure);
  if (step) return step;
  Error error = std::move(step).error();
  const auto rule = ruled->rules.find(error.pointer);
  if (rule != ruled->rules.end()) error.pointer = rule->second;
  return error;
}

}  // namespace stowage::simulator
