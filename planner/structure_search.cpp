#include "planner/structure_search.h"

#include <utility>

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
      floor_(memory_floor(footprints_)),
      tight_(tightest(footprints_, floor_)),
      space_(footprints_, tight_) {}

Result<std::unique_ptr<StructureSearch>> StructureSearch::make(
    const Trace& recording, const simulator::Structure& structure, const PlanRequest& request) {
  const Result<simulator::Step> step = simulator::unroll(recording, structure);
  if (!step) return step.error();
  return std::make_unique<StructureSearch>(std::make_shared<const simulator::StepIndex>(*step),
                                           structure, request);
}

std::optional<Candidate> StructureSearch::tight_plan() {
  return evaluator_.evaluate(footprints_.tight(tight_.choices));
}

StructureSearch::Found StructureSearch::solve(Bytes budget, Nanoseconds shortest,
                                              const Effort& effort,
                                              std::optional<Candidate> first) {
  Found found;
  Bytes within = budget;
  for (int round = 0; round < effort.rounds && within >= floor_.bytes; ++round) {
    std::optional<Candidate> candidate =
        round == 0 ? std::move(first) : estimate(within, shortest, effort);
    if (!candidate) break;
    const Nanoseconds step = candidate->result.step_ns;
    if (effort.below && step >= *effort.below) break;
    const Bytes peak = evaluator_.exact_peak(*candidate);
    found.candidates.push_back({std::move(*candidate), peak});
    if (peak <= budget) {
      found.step = step;
      break;
    }
    within -= peak - budget;
  }
  return found;
}

}  // namespace stowage::planner
