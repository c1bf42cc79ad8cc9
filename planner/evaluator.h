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

struct Spent {
  std::int64_t evaluations = 0;
  bool stopped = false;    // by the stop token
  bool exhausted = false;  // by max_evaluations
  std::optional<Error> error;

  void add(const Spent& other);
};

class Evaluator {
 public:
  // Both must outlive it. Each is used by one thread at a time.
  Evaluator(const simulator::StepIndex& index, const PlanRequest& request)
      : index_(index), request_(request) {}

  // A search begins when the request has spent so much. `best_step`, for progress reports: -1 =
  // none yet; absent: it does not report.
  void begin(const Spent& before, std::optional<Nanoseconds> best_step);
  // What was spent since.
  [[nodiscard]] const Spent& spent() const { return spent_; }

  // Empty when the search is over (limit or stop), or when the decisions cannot be lowered: the
  // error is kept. Cost: one lower() and one estimate().
  [[nodiscard]] std::optional<Candidate> evaluate(const simulator::Decisions& decisions);

  // The same counter as replay() gives it. Cost: that of lower() and replay() where the trace's
  // device has memory that counts otherwise, else nothing.
  [[nodiscard]] Bytes exact_peak(const Candidate& candidate) const;
  // Active bytes as the caching allocator counts them in its first steps, seldom a little less;
  // what planned memory is seldom above; the exact counter where the budget is on another one. Both
  // cost a part of exact_peak() alone.
  [[nodiscard]] Bytes likely_peak(const Candidate& candidate) const;
  [[nodiscard]] bool likely_is_exact() const { return !is_cached_active() && !is_placed(); }

  // Within the budget of the host too.
  [[nodiscard]] bool keeps(const Candidate& candidate, Bytes budget) const;

  [[nodiscard]] bool over();

 private:
  [[nodiscard]] bool has_allocator() const { return index_.trace().setup.size() > 0; }
  // The budget is on what the caching allocator has active.
  [[nodiscard]] bool is_cached_active() const {
    return has_allocator() && request_.budget_on == simulator::PeakKind::active &&
           request_.placement == simulator::PlacementMode::caching;
  }
  // The budget is on planned memory.
  [[nodiscard]] bool is_placed() const {
    return has_allocator() && request_.budget_on == simulator::PeakKind::reserved &&
           request_.placement == simulator::PlacementMode::planned;
  }
  [[nodiscard]] simulator::Schedule schedule_of(const Candidate& candidate) const;

  const simulator::StepIndex& index_;
  const PlanRequest& request_;
  std::int64_t before_ = 0;
  std::optional<Nanoseconds> best_step_;
  Spent spent_;
};

}  // namespace stowage::planner
