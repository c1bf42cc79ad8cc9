#include "planner/best_plan.h"

#include <utility>

namespace stowage::planner {

void BestPlan::offer(StructureSearch& in, StructureSearch::Found found) {
  for (StructureSearch::Found::Counted& exact : found.candidates) {
    if (exact.peak > *request_.budget) continue;
    if (!in.evaluator().keeps(exact.candidate, *request_.budget)) continue;
    if (answer_ && !exact.candidate.better_than(answer_->candidate)) continue;
    answer_ = Answer{std::move(exact.candidate), &in};
  }
}

bool BestPlan::offer(StructureSearch& in, std::optional<Candidate> candidate) {
  if (!candidate) return false;
  const Bytes peak = in.evaluator().exact_peak(*candidate);
  const bool is_one = peak <= *request_.budget;
  StructureSearch::Found found;
  found.candidates.push_back({std::move(*candidate), peak, {}});
  offer(in, std::move(found));
  return is_one;
}

Nanoseconds BestPlan::step() const {
  return answer_ ? answer_->candidate.result.step_ns : -1;
}

bool BestPlan::reached(Nanoseconds bound) const {
  return answer_ && answer_->candidate.result.step_ns <= bound;
}

bool BestPlan::within_host_budget(const simulator::ReplayResult& result) const {
  return !request_.host_budget || result.host_bytes <= *request_.host_budget;
}

bool BestPlan::over() {
  if (request_.stop.stop_requested()) spent.stopped = true;
  if (spent.evaluations >= request_.max_evaluations) spent.exhausted = true;
  return spent.stopped || spent.exhausted;
}

void BestPlan::report() const {
  if (request_.progress) {
    request_.progress({spent.evaluations, request_.max_evaluations, step()});
  }
}

}  // namespace stowage::planner
