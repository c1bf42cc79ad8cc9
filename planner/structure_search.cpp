#include "planner/structure_search.h"

#include <map>
#include <utility>

#include "planner/pins.h"
#include "simulator/step/unroll.h"

namespace stowage::planner {
namespace {

// The structure is settled: there is no `again` beside it.
Allowed movement_of(Allowed allowed) {
  allowed.recompute = false;
  return allowed;
}

}  // namespace

StructureSearch::StructureSearch(std::shared_ptr<const simulator::StepIndex> index,
                                 simulator::Structure structure, const PlanRequest& request)
    : index_(std::move(index)),
      structure_(std::move(structure)),
      evaluator_(*index_, request),
      footprints_(*index_, request.budget_on, movement_of(request.allowed)),
      floor_(memory_floor(footprints_)) {
  const simulator::Step& step = index_->step();
  for (const Movable& movable : footprints_.movable()) {
    if (movable.is_layer()) {
      keys_.emplace_back(-static_cast<std::int32_t>(movable.what), movable.layer.value);
      continue;
    }
    const StorageId storage = movable.storages.front();
    keys_.emplace_back(step.origin(storage).row.value,
                       static_cast<std::int64_t>(step.pass(storage)));
  }
}

Result<std::unique_ptr<StructureSearch>> StructureSearch::make(
    const Trace& recording, const simulator::Structure& structure, const PlanRequest& request) {
  const Result<simulator::Step> step = simulator::unroll(recording, structure);
  if (!step) return step.error();
  auto index = std::make_shared<const simulator::StepIndex>(*step);
  if (request.allowed.pinned && !request.allowed.pinned->can_hold_in(*index)) {
    return Error{ErrorCode::bad_input, "what is pinned is not there to be moved", "", "", ""};
  }
  return std::make_unique<StructureSearch>(std::move(index), structure, request);
}

const TightPlan& StructureSearch::tight() {
  if (!tight_) tight_ = tightest(footprints_, floor_);
  return *tight_;
}

const SearchSpace& StructureSearch::space() {
  if (!space_) space_.emplace(footprints_, tight());
  return *space_;
}

std::optional<Candidate> StructureSearch::tight_plan() {
  return evaluator_.evaluate(footprints_.tight(tight().choices));
}

StructureSearch::Found StructureSearch::solve(Bytes budget, Nanoseconds shortest,
                                              const Effort& effort, std::optional<Solution> first) {
  Found found;
  Bytes within = budget;
  for (int round = 0; round < effort.rounds && within >= floor_.bytes; ++round) {
    std::optional<Solution> solution =
        round == 0 ? std::move(first) : estimate(within, shortest, effort);
    if (!solution) break;
    const Nanoseconds step = solution->candidate.result.step_ns;
    if (effort.below && step >= *effort.below) break;
    const Bytes peak = peak_of(solution->candidate, effort.peak);
    found.candidates.push_back(
        {std::move(solution->candidate), peak, std::move(solution->choices)});
    if (peak <= budget) {
      found.step = step;
      break;
    }
    within -= peak - budget;
  }
  return found;
}

Bytes StructureSearch::peak_of(const Candidate& candidate, Peak peak) const {
  switch (peak) {
    case Peak::exact:
      return evaluator_.exact_peak(candidate);
    case Peak::likely:
      return evaluator_.likely_peak(candidate);
    case Peak::alive:
      return candidate.peak;
  }
  return candidate.peak;
}

std::vector<Choice> StructureSearch::choices_like(const StructureSearch& other,
                                                  const std::vector<Choice>& choices) const {
  std::map<Key, Choice> by_key;
  for (std::size_t m = 0; m < choices.size(); ++m) by_key[other.keys_[m]] = choices[m];
  std::vector<Choice> like(keys_.size(), Choice::keep);
  for (std::size_t m = 0; m < keys_.size(); ++m) {
    const auto at = by_key.find(keys_[m]);
    if (at != by_key.end() && footprints_.movable()[m].allows(at->second)) like[m] = at->second;
  }
  return like;
}

}  // namespace stowage::planner
