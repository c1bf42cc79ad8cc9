#include "planner/policy_starts.h"

#include <algorithm>
#include <utility>

#include "planner/pins.h"
#include "planner/policy.h"
#include "simulator/lowering/lowering.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/plan_structure.h"
#include "traces/units.h"

namespace stowage::planner {
namespace {

using simulator::Decision;

// Defaults, and options that are in use; `schedule=optimal` makes a step for each layer, which
// takes longer than all of these together.
constexpr const char* kSpecs[] = {"checkpoint", "checkpoint:every=2", "checkpoint:run=sqrt",
                                  "selective",  "selective:every=2",  "fairscale"};

bool has(const PolicyRules& rules, Decision decision) {
  return std::any_of(rules.saved.begin(), rules.saved.end(),
                     [&](const simulator::SavedRule& rule) { return rule.decision == decision; });
}

}  // namespace

bool runs_again(const PolicyRules& rules) {
  return !rules.recompute.empty() || has(rules, Decision::recompute);
}

bool admits(const Allowed& allowed, const PolicyRules& rules) {
  const bool offloads =
      has(rules, Decision::offload) ||
      std::any_of(rules.recompute.begin(), rules.recompute.end(),
                  [](const auto& rule) { return rule.boundary == Decision::offload; });
  const bool streams = rules.parameters && !rules.parameters->stream.off();
  return (allowed.offload || !offloads) && (allowed.parameters || !streams) &&
         (allowed.optimizer || rules.optimizer.empty()) &&
         (allowed.gradients || rules.gradients.empty()) &&
         (allowed.recompute || !runs_again(rules)) && rules.micro_batches.empty();
}

PolicyStart::PolicyStart(const PolicyRules& rules) : runs_again_(planner::runs_again(rules)) {
  plan_.saved = rules.saved;
  plan_.recompute = rules.recompute;
  plan_.parameters = rules.parameters;
  plan_.optimizer = rules.optimizer;
  plan_.gradients = rules.gradients;
  plan_.budget.automatic = rules.automatic;
}

const Candidate* PolicyStart::plan(const Trace& recording, const PlanRequest& request,
                                   std::optional<Nanoseconds> below, Spent& spent) {
  if (is_tried_) return candidate_ ? &*candidate_ : nullptr;
  if (shortest_ && below && *shortest_ >= *below) return nullptr;
  const Result<simulator::Step> step = simulator::unroll(recording, plan_);
  if (!step) {
    is_tried_ = true;
    return nullptr;
  }
  const simulator::StepIndex index(*step);
  structure_ = simulator::structure_of(*step);
  const Ppm boost = simulator::rest_gain(recording.calibration).boost;
  shortest_ = static_cast<Nanoseconds>(Wide{index.compute_until().back()} * kPpm / boost);
  if (below && *shortest_ >= *below) return nullptr;
  is_tried_ = true;
  Result<simulator::Decisions> decisions = simulator::resolve(step->trace(), plan_);
  if (!decisions) return nullptr;
  const Pins* const pinned = request.allowed.pinned.get();
  if (pinned != nullptr &&
      (!pinned->is_part_of(structure_) || !pinned->hold_in(index, *decisions))) {
    return nullptr;
  }
  Evaluator evaluator(index, request);
  evaluator.begin(spent, {});
  candidate_ = evaluator.evaluate(*decisions);
  Spent taken = evaluator.spent();
  taken.error.reset();
  spent.add(taken);
  if (!candidate_) return nullptr;
  peak_ = evaluator.exact_peak(*candidate_);
  return &*candidate_;
}

StructureSearch* PolicyStart::search(const Trace& recording, const PlanRequest& request) {
  if (search_ == nullptr) {
    auto made = StructureSearch::make(recording, structure_, request);
    if (made) search_ = std::move(made).value();
  }
  return search_.get();
}

std::vector<PolicyStart> policy_starts(const simulator::StepIndex& recorded,
                                       const PlanRequest& request, const StructurePool& pool) {
  std::vector<PolicyStart> starts;
  for (const char* const spec : kSpecs) {
    const Result<PolicyRules> rules = policy_rules(recorded, spec, {}, &pool);
    if (rules && admits(request.allowed, *rules)) starts.emplace_back(*rules);
  }
  return starts;
}

}  // namespace stowage::planner
