#include "planner/evaluator.h"

#include <tuple>
#include <utility>

#include "simulator/lowering.h"

namespace stowage::planner {

bool Candidate::better_than(const Candidate& other) const {
  const auto key = [](const Candidate& c) {
    return std::tuple(c.result.step_ns, c.transfer(), c.peak);
  };
  return key(*this) < key(other);
}

std::optional<Candidate> Evaluator::evaluate(const simulator::Decisions& decisions) {
  if (over()) return std::nullopt;
  ++evaluations_;
  auto lowering = simulator::lower(index_, decisions);
  if (!lowering) {
    if (!error_) error_ = lowering.error();
    return std::nullopt;
  }
  Candidate candidate;
  candidate.decisions = decisions;
  candidate.result = simulator::replay(index_, lowering->schedule);
  candidate.peak = peak_of(candidate.result, request_.budget_on);
  if (request_.progress) {
    request_.progress({evaluations_, request_.max_evaluations, best_step_});
  }
  return candidate;
}

bool Evaluator::keeps(const Candidate& candidate, Bytes budget) const {
  return candidate.peak <= budget &&
         (!request_.host_budget || candidate.result.host_bytes <= *request_.host_budget);
}

bool Evaluator::over() {
  if (request_.stop.stop_requested()) stopped_ = true;
  if (evaluations_ >= request_.max_evaluations) exhausted_ = true;
  return stopped_ || exhausted_;
}

}  // namespace stowage::planner
