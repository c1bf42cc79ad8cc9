#include "planner/evaluator.h"

#include <tuple>
#include <utility>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/lowering/lowering.h"
#include "traces/result.h"

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
  candidate.result = simulator::estimate(index_, lowering->schedule);
  // Active bytes are a lower bound of the reserved ones.
  candidate.peak = request_.budget_on == simulator::PeakKind::requested
                       ? candidate.result.peak_requested
                       : candidate.result.peak_active;
  if (request_.progress) {
    request_.progress({evaluations_, request_.max_evaluations, best_step_});
  }
  return candidate;
}

Bytes Evaluator::exact_peak(const Candidate& candidate) const {
  if (request_.budget_on == simulator::PeakKind::requested || index_.trace().setup.size() == 0) {
    return candidate.peak;
  }
  const auto lowering = simulator::lower(index_, candidate.decisions);
  STOWAGE_ASSERT(lowering.ok());  // it was lowered before
  const auto allocator = simulator::replay_allocator(index_, lowering->schedule);
  return request_.budget_on == simulator::PeakKind::active ? allocator.peak_active
                                                           : allocator.peak_reserved;
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
