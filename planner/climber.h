// The search for one budget over the structures of a step: from sets in the recorded structure to
// what else runs again, step by step to better neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/best_plan.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/policy_starts.h"
#include "planner/structure_pool.h"
#include "planner/structure_search.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

// A budget that is searched for, which need not be the one asked for.
struct SearchPoint {
  Bytes bytes = 0;
  // It is on what is alive. Where the budget asked for is on the pages of planned memory, what is
  // found counts as far as its pages keep that.
  bool is_on_alive = false;
};

// The best by now for one budget.
struct Climb {
  SearchPoint point{};
  StructureSearch* in = nullptr;
  StructurePool::Members members;
  std::vector<Choice> choices;      // none were found: empty
  std::optional<Nanoseconds> step;  // likewise
  // By their likely counter within the budget, the best last.
  std::vector<std::pair<StructureSearch*, Candidate>> likely{};
};

// One for what is allowed.
class Climber {
 public:
  // All must outlive it, and what it finds is of it. An empty pool: nothing of it runs again.
  Climber(const simulator::StepIndex& index, PlanRequest request, const StructurePool& pool,
          BestPlan& best);
  // The same, or in a step whose parameters the host updates, or where something is pinned to run
  // again, beside all else; `index` is of that step, `pool` of the recorded one.
  Climber(std::shared_ptr<const simulator::StepIndex> index, PlanRequest request,
          const StructurePool& pool, BestPlan& best);
  Climber(const Climber&) = delete;
  Climber& operator=(const Climber&) = delete;

  // Nothing of it runs again but what is pinned.
  [[nodiscard]] StructureSearch& base() { return base_; }
  [[nodiscard]] const StructureSearch& base() const { return base_; }
  // Some structure is there to choose beside the recorded one.
  [[nodiscard]] bool has_structures() { return !pool_.empty() || policies_run_again(); }

  // Offers the best plans for one budget, which depend on that alone, whatever the one asked for,
  // and answers with the best. `bound` is of that budget, and ends it.
  Climb solve(const SearchPoint& point, Nanoseconds bound);
  // The same, for little: from the best of another one, for which less was allowed, in the
  // structure of that; far from the bound also in its neighbours.
  Climb solve_from(const Climb& climb, Nanoseconds bound);
  // The same of a step whose updates may be elsewhere: also from where nothing runs again.
  Climb solve_beside(const Climb& climb, Nanoseconds bound);
  // The same from the best of another point, of this climber, with that one's step: in its
  // structure and in the neighbours.
  void go_on(Climb& climb, Nanoseconds bound);
  // From the plan of these rules.
  void solve_from(const PolicyRules& rules, const SearchPoint& point);

  // Of all that was looked into: that with the lowest peak.
  [[nodiscard]] StructureSearch& tightest();

 private:
  struct Short {
    StructurePool::Members members;
    std::unique_ptr<StructureSearch>* search = nullptr;
    Nanoseconds shortest = 0;
    std::optional<Solution> found{};  // its exact counter is not known
    Nanoseconds step = -1;            // found, -1 = none
  };

  [[nodiscard]] StructureSearch::Effort long_search(const StructureSearch& in) const;
  // With what base() leaves out, and runs again.
  [[nodiscard]] simulator::Structure with_base(simulator::Structure structure) const;
  // Beside what base() does.
  [[nodiscard]] bool runs_again(const StructureSearch& in) const;
  // Null where it cannot be had.
  StructureSearch* search_like(const StructureSearch& other);
  void solve_in(Climb& climb, Nanoseconds bound);
  void climb_structures(Climb& climb, std::vector<StructurePool::Members> next, std::int64_t most);
  [[nodiscard]] std::vector<StructurePool::Members> neighbours(const Climb& climb) const;
  std::vector<PolicyStart>& policies();
  [[nodiscard]] bool policies_run_again();
  void start_from_policies(Climb& climb);
  void take_best(const std::vector<StructurePool::Members>& all, Climb& climb);
  void take(Short& each, const Climb& from, Climb& climb);
  void offer(StructureSearch& in, const SearchPoint& point, StructureSearch::Found found);
  void keep_best(std::vector<Short>& round, std::size_t most);
  void estimate(Short& of, const Climb& from, std::int64_t quota) const;
  [[nodiscard]] bool is_longer(const StructurePool::Members& members,
                               const std::optional<Nanoseconds>& step) const;
  [[nodiscard]] static SearchSeed seed_of(const StructureSearch& in, const Climb& from);

  const simulator::StepIndex& index_;
  const PlanRequest request_;
  const StructurePool& pool_;
  BestPlan& best_;
  const std::int64_t effort_;
  StructureSearch base_;
  std::map<StructurePool::Members, std::unique_ptr<StructureSearch>> searches_;
  // In the structures of another one's, in the order in which they were asked for.
  std::vector<std::pair<const StructureSearch*, std::unique_ptr<StructureSearch>>> like_;
  std::optional<std::vector<PolicyStart>> policies_;  // once they are asked for
};

// Times the gap to the bound is the bound, or less: it is worth a further look.
inline constexpr Nanoseconds kFarFromBound = 20;

// Structures of small steps cost little to look into: times what is done for a large one.
inline constexpr std::int64_t kMostEffort = 4;
// Evaluations that the search for one budget may take in one structure: about as much time for
// every trace.
[[nodiscard]] std::int64_t evaluations_for(const simulator::StepIndex& index);
[[nodiscard]] std::int64_t effort_for(const simulator::StepIndex& index);

}  // namespace stowage::planner
