// Lowers and replays decisions, counts how often, and knows when to stop. A search goes by
// estimates; what it offers as an answer is replayed in full.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "planner/planner.h"
#include "simulator/plan/decisions.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"

namespace stowage::planner {

// Decisions with what the simulator says about them.
struct Candidate {
  simulator::Decisions decisions;
  simulator::ReplayResult result;
  Bytes peak = 0;  // of the counter that the budget is about, as estimated: never too much
  [[nodiscard]] Bytes transfer() const { return result.d2h_bytes + result.h2d_bytes; }
  // Shorter step, then fewer bytes moved, then lower peak.
  [[nodiscard]] bool better_than(const Candidate& other) const;
};

class Evaluator {
 public:
  Evaluator(const simulator::StepIndex& index, const PlanRequest& request)
      : index_(index), request_(request) {}

  // Empty when the search is over (limit or stop), or when the decisions cannot be lowered: the
  // error is kept. Cost: one lower() and one estimate().
  [[nodiscard]] std::optional<Candidate> evaluate(const simulator::Decisions& decisions);

  // The same counter as replay() gives it. Cost: that of lower() and replay() where the trace's
  // device has an allocator that counts otherwise, else nothing.
  [[nodiscard]] Bytes exact_peak(const Candidate& candidate) const;

  // Within the budget of the host too.
  [[nodiscard]] bool keeps(const Candidate& candidate, Bytes budget) const;

  [[nodiscard]] bool over();
  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // For progress reports.
  void set_best(Nanoseconds step) { best_step_ = step; }

 private:
  const simulator::StepIndex& index_;
  const PlanRequest& request_;
  std::int64_t evaluations_ = 0;
  bool stopped_ = false;
  bool exhausted_ = false;
  Nanoseconds best_step_ = -1;
  std::optional<Error> error_;
};

}  // namespace stowage::planner
