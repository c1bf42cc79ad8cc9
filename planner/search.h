// The search of `auto` for one budget: storages by several orders of preference until the tight
// plan fits, automatic points within the budget, then local improvement on the replayed step.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/evaluator.h"
#include "planner/footprint.h"
#include "planner/search_space.h"
#include "planner/set_builder.h"

namespace stowage::planner {

// A plan with the set that it was made of.
struct Solution {
  Candidate candidate;
  std::vector<Choice> choices;  // by movable
};

// What a search starts from beside sets of its own: another set, one choice a movable; empty:
// nothing.
struct SearchSeed {
  std::vector<Choice> choices;
  bool alone = false;  // it starts from nothing else where that gives a plan
};

class Search {
 public:
  // `quota`: evaluations for one budget. Space and evaluator must outlive the search.
  Search(const SearchSpace& space, Evaluator& evaluator, std::int64_t quota)
      : space_(space), evaluator_(evaluator), quota_(quota) {}

  // The best plan found with a peak within `budget`, if any; `shortest` ends the search when it is
  // reached. Depends on the trace and the arguments only, never on an earlier call.
  [[nodiscard]] std::optional<Solution> solve(Bytes budget, Nanoseconds shortest,
                                              const SearchSeed& seed = {});

 private:
  enum class Points : std::uint8_t { automatic, early_release, on_demand, tight };
  struct Incumbent {
    Candidate candidate;
    std::vector<Choice> choices;
    Points points = Points::automatic;
  };
  [[nodiscard]] bool finished() const;
  bool attempt(const std::vector<Choice>& choices, Points points);
  void start();
  void start_near(const std::vector<Choice>& choices);

  // search_moves.cpp. Each move goes on from the best set, whichever that is by then.
  void improve();
  void move_groups();
  void move_stalled();
  void move_one_more();
  void move_points();
  bool try_set(const SetBuilder& changed);
  [[nodiscard]] SetBuilder best_set() const;
  bool fill_without(const std::vector<std::size_t>& group, SearchSpace::Order order,
                    SetBuilder& set) const;
  [[nodiscard]] std::vector<std::size_t> stalled_first() const;

  const SearchSpace& space_;
  Evaluator& evaluator_;
  std::int64_t quota_;

  // Of the current call of solve().
  Bytes budget_ = 0;
  Nanoseconds shortest_ = 0;
  std::int64_t left_ = 0;
  std::optional<Incumbent> best_;
  std::vector<std::pair<std::vector<Choice>, Points>> tried_;
};

}  // namespace stowage::planner
