#include "planner/evaluator.h"

#include <tuple>
#include <utility>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/planned_memory.h"
#include "traces/result.h"

namespace stowage::planner {

bool Candidate::better_than(const Candidate& other) const {
  const auto key = [](const Candidate& c) {
    return std::tuple(c.result.step_ns, c.transfer(), c.peak);
  };
  return key(*this) < key(other);
}

void Spent::add(const Spent& other) {
  evaluations += other.evaluations;
  stopped = stopped || other.stopped;
  exhausted = exhausted || other.exhausted;
  if (!error) error = other.error;
}

void Evaluator::begin(const Spent& before, std::optional<Nanoseconds> best_step) {
  before_ = before.evaluations;
  best_step_ = best_step;
  spent_ = {};
}

std::optional<Candidate> Evaluator::evaluate(const simulator::Decisions& decisions) {
  if (over()) return std::nullopt;
  ++spent_.evaluations;
  auto lowering = simulator::lower(index_, decisions);
  if (!lowering) {
    if (!spent_.error) spent_.error = lowering.error();
    return std::nullopt;
  }
  Candidate candidate;
  candidate.decisions = decisions;
  candidate.result = simulator::estimate(index_, lowering->schedule);
  // Active bytes are a lower bound of the reserved ones.
  candidate.peak = request_.budget_on == simulator::PeakKind::requested
                       ? candidate.result.peak_requested
                       : candidate.result.peak_active;
  if (request_.progress && best_step_) {
    request_.progress({before_ + spent_.evaluations, request_.max_evaluations, *best_step_});
  }
  return candidate;
}

Bytes Evaluator::exact_peak(const Candidate& candidate) const {
  if (request_.budget_on == simulator::PeakKind::requested || !has_allocator()) {
    return candidate.peak;
  }
  const simulator::Schedule schedule = schedule_of(candidate);
  if (is_placed()) return simulator::planned_bytes(index_, schedule).bytes;
  // Where memory is planned, what is active is what is alive, as it was estimated.
  if (request_.placement == simulator::PlacementMode::planned) return candidate.peak;
  const auto allocator = simulator::replay_allocator(index_, schedule);
  return request_.budget_on == simulator::PeakKind::active ? allocator.peak_active
                                                           : allocator.peak_reserved;
}

Bytes Evaluator::likely_peak(const Candidate& candidate) const {
  // Most plans of recorded steps take less beside what is alive; the answer's pages are counted.
  constexpr Bytes kRestsOfPages = 200;  // a part of it
  if (is_placed()) return candidate.peak + candidate.peak / kRestsOfPages;
  if (likely_is_exact()) return exact_peak(candidate);
  return simulator::replay_allocator_shortly(index_, schedule_of(candidate)).peak_active;
}

simulator::Schedule Evaluator::schedule_of(const Candidate& candidate) const {
  auto lowering = simulator::lower(index_, candidate.decisions);
  STOWAGE_ASSERT(lowering.ok());  // it was lowered before
  return std::move(lowering->schedule);
}

bool Evaluator::keeps(const Candidate& candidate, Bytes budget) const {
  return candidate.peak <= budget &&
         (!request_.host_budget || candidate.result.host_bytes <= *request_.host_budget);
}

bool Evaluator::over() {
  if (request_.stop.stop_requested()) spent_.stopped = true;
  if (before_ + spent_.evaluations >= request_.max_evaluations) spent_.exhausted = true;
  return spent_.stopped || spent_.exhausted;
}

}  // namespace stowage::planner
