// One structure of the step with all that a search in it needs: what runs again is settled, what
// moves is not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/allowed.h"
#include "planner/bounds.h"
#include "planner/evaluator.h"
#include "planner/footprint.h"
#include "planner/search.h"
#include "planner/search_space.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/result.h"

namespace stowage::planner {

class StructureSearch {
 public:
  // The request must outlive it. Cost: footprints of the index; the search space is made when it is
  // asked for first, since many a structure's floor or bound says that it is worth nothing. Used by
  // one thread at a time.
  StructureSearch(std::shared_ptr<const simulator::StepIndex> index, simulator::Structure structure,
                  const PlanRequest& request);
  StructureSearch(const StructureSearch&) = delete;
  StructureSearch& operator=(const StructureSearch&) = delete;

  // Of a recording, which must outlive it. Errors: those of unroll(); what is pinned cannot be.
  [[nodiscard]] static Result<std::unique_ptr<StructureSearch>> make(
      const Trace& recording, const simulator::Structure& structure, const PlanRequest& request);

  [[nodiscard]] const simulator::StepIndex& index() const { return *index_; }
  [[nodiscard]] const simulator::Structure& structure() const { return structure_; }
  [[nodiscard]] const Footprints& footprints() const { return footprints_; }
  // Of the plans with this structure.
  [[nodiscard]] const MemoryFloor& floor() const { return floor_; }
  [[nodiscard]] const TightPlan& tight();
  [[nodiscard]] const SearchSpace& space();
  [[nodiscard]] Evaluator& evaluator() { return evaluator_; }

  // The plan that holds the fewest bytes.
  [[nodiscard]] std::optional<Candidate> tight_plan();

  // What is held against the budget: the exact counter that it is on, the likely one
  // (Evaluator::likely_peak), or what is alive, whichever counter it is on.
  enum class Peak : std::uint8_t { exact, likely, alive };
  struct Effort {
    std::int64_t quota = 0;  // evaluations a round
    int rounds = 6;
    std::optional<Nanoseconds> below{};  // only steps shorter than that matter
    SearchSeed seed{};
    Peak peak = Peak::exact;
  };
  struct Found {
    struct Counted {
      Candidate candidate;
      Bytes peak = 0;
      std::vector<Choice> choices{};
    };
    std::vector<Counted> candidates;  // one a round
    std::optional<Nanoseconds> step;  // of the last one, when that is within the budget
  };
  // The best plans for one budget: while the peak is above it, the search is repeated with that
  // much less. Depends on the budget given alone. `shortest` ends it when it is reached.
  [[nodiscard]] Found solve(Bytes budget, Nanoseconds shortest, const Effort& effort) {
    return solve(budget, shortest, effort, estimate(budget, shortest, effort));
  }
  // Its first round, whose exact counter is not known: cheap beside that.
  [[nodiscard]] std::optional<Solution> estimate(Bytes budget, Nanoseconds shortest,
                                                 const Effort& effort) {
    return Search(space(), evaluator_, effort.quota).solve(budget, shortest, effort.seed);
  }
  // The others behind it.
  [[nodiscard]] Found solve(Bytes budget, Nanoseconds shortest, const Effort& effort,
                            std::optional<Solution> first);

  // What these choices of another structure of the same recording are here: those of the same
  // storages and layers, as far as they may leave here too.
  [[nodiscard]] std::vector<Choice> choices_like(const StructureSearch& other,
                                                 const std::vector<Choice>& choices) const;

 private:
  [[nodiscard]] Bytes peak_of(const Candidate& candidate, Peak peak) const;

  // A movable in every structure: the recorded storage and its pass, or -1 and the layer.
  using Key = std::pair<std::int64_t, std::int64_t>;

  std::shared_ptr<const simulator::StepIndex> index_;
  simulator::Structure structure_;
  Evaluator evaluator_;
  Footprints footprints_;
  MemoryFloor floor_;
  std::optional<TightPlan> tight_;
  std::optional<SearchSpace> space_;
  std::vector<Key> keys_;  // by movable
};

}  // namespace stowage::planner
