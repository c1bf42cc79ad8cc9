// The search of `auto` for one budget: storages by several orders of preference until the tight
// plan fits, automatic points within the budget, then local improvement on the replayed step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/bounds.h"
#include "planner/evaluator.h"
#include "planner/footprint.h"
#include "planner/footprint_changes.h"

namespace stowage::planner {

class Search {
 public:
  // `quota`: evaluations for one budget. All but the evaluator must outlive the search.
  Search(const Footprints& footprints, const TightPlan& tight, Evaluator& evaluator,
         std::int64_t quota);

  // The best plan found with a peak within `budget`, if any; `shortest` ends the search when it is
  // reached. Depends on the trace, the budget and the quota only, never on an earlier call.
  [[nodiscard]] std::optional<Candidate> solve(Bytes budget, Nanoseconds shortest);

  // Storages that some plan can offload.
  [[nodiscard]] std::int64_t candidates() const;

 private:
  enum class Points : std::uint8_t { automatic, early_release, on_demand, tight };
  struct Incumbent {
    Candidate candidate;
    std::vector<Choice> choices;
    Points points = Points::automatic;
  };
  using Order = std::vector<std::size_t>;
  // How each movable leaves when it leaves, with parameters streaming in one way or not at all.
  struct Ways {
    std::vector<Choice> preferred;  // shared where allowed
    std::vector<Choice> tight;      // as in the tight plan
  };

  void make_ways();
  void make_orders();
  void make_groups();
  [[nodiscard]] bool finished() const;
  bool attempt(const std::vector<Choice>& choices, Points points);
  void start(const Ways& ways, const std::vector<std::int64_t>& percents);
  void start();
  void improve();
  [[nodiscard]] std::vector<std::size_t> stalled_first() const;
  [[nodiscard]] const Ways& ways_of(const std::vector<Choice>& choices) const;

  const Footprints& footprints_;
  const FootprintChanges changes_;
  const TightPlan& tight_;
  Evaluator& evaluator_;
  std::int64_t quota_;
  std::vector<Ways> ways_;  // parameters stay, stream forward, stream always
  std::vector<Order> orders_;
  std::vector<std::vector<std::size_t>> groups_;  // movables of identical layers
  std::vector<std::int32_t> movable_of_;          // by storage

  // Of the current call of solve().
  Bytes budget_ = 0;
  Nanoseconds shortest_ = 0;
  std::int64_t left_ = 0;
  std::optional<Incumbent> best_;
  std::vector<std::pair<std::vector<Choice>, Points>> tried_;
};

}  // namespace stowage::planner
