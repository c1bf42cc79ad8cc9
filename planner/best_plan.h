// The best plan that a search knows by now and what the search has spent: of all that look for one.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/evaluator.h"
#include "planner/planner.h"
#include "planner/structure_search.h"
#include "simulator/replay/replay.h"
#include "traces/units.h"

namespace stowage::planner {

// Used by one thread.
class BestPlan {
 public:
  struct Answer {
    Candidate candidate;
    StructureSearch* in = nullptr;  // what found it, which has to outlive this
  };

  // Of a request with a budget, which must outlive it.
  explicit BestPlan(const PlanRequest& request) : request_(request) {}

  // Takes those that keep both budgets by their exact counter and are better.
  void offer(StructureSearch& in, StructureSearch::Found found);
  // False where it is none, or not within the budget.
  bool offer(StructureSearch& in, std::optional<Candidate> candidate);

  [[nodiscard]] const std::optional<Answer>& answer() const { return answer_; }
  // Of the answer, -1 = none.
  [[nodiscard]] Nanoseconds step() const;
  [[nodiscard]] bool reached(Nanoseconds bound) const;
  [[nodiscard]] bool within_host_budget(const simulator::ReplayResult& result) const;

  // By the stop token or the number of evaluations, which it marks in `spent`.
  bool over();
  // To the request's callback.
  void report() const;

  Spent spent;
  std::int64_t grid_points = 0;
  std::int64_t structures = 0;

 private:
  const PlanRequest& request_;
  std::optional<Answer> answer_;
};

}  // namespace stowage::planner
