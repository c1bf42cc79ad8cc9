#include "planner/plan_with_gradients.h"

#include <algorithm>
#include <utility>

#include "planner/budget.h"
#include "planner/plan_as_recorded.h"

namespace stowage::planner {
namespace {

void add(SearchStats& to, const SearchStats& of) {
  to.evaluations += of.evaluations;
  to.candidates = std::max(to.candidates, of.candidates);
  to.grid_points += of.grid_points;
  to.structures += of.structures;
  to.stopped = to.stopped || of.stopped;
  to.exhausted = to.exhausted || of.exhausted;
}

// Of two plans within the budget the faster one, else the one within it, else the tighter one.
bool is_better(const PlanOutcome& without, const PlanOutcome& with, simulator::PeakKind on) {
  if (without.feasible() != with.feasible()) return without.feasible();
  if (without.feasible()) return without.predicted.step_ns <= with.predicted.step_ns;
  if (!without.plan.predicted || !with.plan.predicted) return without.plan.predicted.has_value();
  return peak_of(without.predicted, on) < peak_of(with.predicted, on);
}

// With the floor and the bound of the second, which are of all that is allowed.
PlanOutcome better_of(PlanOutcome without, PlanOutcome with, simulator::PeakKind on) {
  SearchStats search = without.search;
  add(search, with.search);
  const Bytes kept_from = std::min(without.kept_from, with.kept_from);
  if (is_better(without, with, on)) {
    // Not within the budget either way: what is proven is what is proven of all.
    if (!without.feasible()) {
      without.kind = with.kind;
      without.notes = with.notes;
    }
    without.lower_bound_step = with.lower_bound_step;
    without.floor = std::move(with.floor);
    without.allowed = with.allowed;
    with = std::move(without);
  }
  with.kept_from = kept_from;
  with.floor.reached = kept_from > 0 && kept_from <= lowest_budget(with.floor.bytes, on);
  with.search = search;
  set_gap(with);
  return with;
}

}  // namespace

bool has_gradients(const simulator::StepIndex& index) {
  const std::vector<StorageClass>& classes = index.trace().storages.storage_class;
  for (std::size_t s = 0; s < classes.size(); ++s) {
    if (classes[s] != StorageClass::gradient) continue;
    if (index.model_state_uses().reason_to_stay(StorageId(s)).empty()) return true;
  }
  return false;
}

Result<PlanOutcome> plan_with_gradients(const simulator::StepIndex& index,
                                        const PlanRequest& request,
                                        std::optional<Nanoseconds> beats) {
  if (!request.allowed.gradients || !has_gradients(index) ||
      policy_name(request.policy) != "auto") {
    return plan_as_recorded(index, request, beats);
  }
  PlanRequest less = request;
  less.allowed.gradients = false;
  Result<PlanOutcome> without = plan_as_recorded(index, less, beats);
  if (!without) return without;
  PlanRequest rest = request;
  rest.max_evaluations -= without->search.evaluations;
  if (without->feasible()) {
    beats = beats ? std::min(*beats, without->predicted.step_ns) : without->predicted.step_ns;
  }
  // What has ended needs no further search, only floor and bound.
  const bool is_over = without->search.stopped || without->search.exhausted;
  if (is_over || rest.max_evaluations <= 0) beats = 0;
  Result<PlanOutcome> with = plan_as_recorded(index, rest, beats);
  if (!with) return with;
  return better_of(std::move(without).value(), std::move(with).value(), request.budget_on);
}

}  // namespace stowage::planner
