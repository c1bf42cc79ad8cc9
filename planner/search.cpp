#include "planner/search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/set_builder.h"

namespace stowage::planner {

using simulator::ReleasePoint;
using simulator::ReloadPoint;

bool Search::finished() const {
  return left_ <= 0 || (best_ && best_->candidate.result.step_ns <= shortest_);
}

// True when it is the best so far.
bool Search::attempt(const std::vector<Choice>& choices, Points points) {
  if (finished() || evaluator_.over()) return false;
  std::pair key{choices, points};
  if (std::find(tried_.begin(), tried_.end(), key) != tried_.end()) return false;
  tried_.push_back(std::move(key));

  ReleasePoint release;
  ReloadPoint reload;
  if (points == Points::early_release || points == Points::tight) {
    release.kind = ReleasePoint::Kind::pack;
  }
  if (points == Points::on_demand || points == Points::tight) {
    reload.kind = ReloadPoint::Kind::unpack;
  }
  simulator::Decisions decisions = space_.footprints().decisions(choices, release, reload);
  decisions.budget = budget_;
  // Automatic points stay within requested bytes; the counter may be another one, a little above.
  for (int tries = 0; tries < 3; ++tries) {
    --left_;
    auto candidate = evaluator_.evaluate(decisions);
    if (!candidate) return false;
    if (evaluator_.keeps(*candidate, budget_)) {
      if (best_ && !candidate->better_than(best_->candidate)) return false;
      best_ = Incumbent{std::move(*candidate), choices, points};
      return true;
    }
    const Bytes above = candidate->peak - budget_;
    if (above <= 0 || candidate->peak == candidate->result.peak_requested ||
        points == Points::tight || *decisions.budget <= above) {
      return false;
    }
    decisions.budget = *decisions.budget - above;
  }
  return false;
}

// Sets for the budget and for a little less, which leaves room for reloads ahead of their use.
void Search::start() {
  for (const std::int64_t percent : {0, 2, 5, 10, 20}) {
    const Bytes target = std::max(space_.tight().peak, budget_ - budget_ / 100 * percent);
    for (std::size_t o = 0; o < space_.orders().size(); ++o) {
      for (const SearchSpace::Order& order : {space_.orders()[o], space_.tight_orders()[o]}) {
        SetBuilder builder(space_.changes());
        if (!builder.fill(order, target)) continue;
        builder.prune(order, target);
        attempt(builder.choices(), Points::automatic);
        break;
      }
    }
  }
  attempt(space_.tight().choices, Points::tight);
  attempt(space_.tight().choices, Points::automatic);
  if (best_) {
    const std::vector<Choice> choices = best_->choices;
    attempt(choices, Points::early_release);
    attempt(choices, Points::on_demand);
    attempt(choices, Points::tight);
  }
}

// The set with what else has to leave, without what may stay.
void Search::start_near(const std::vector<Choice>& choices) {
  const auto& orders = space_.orders();
  for (std::size_t o = orders.size(); o-- > 0;) {
    for (const SearchSpace::Order& order : {orders[o], space_.tight_orders()[o]}) {
      SetBuilder builder(space_.changes());
      for (std::size_t m = 0; m < choices.size(); ++m) {
        if (choices[m] != Choice::keep) builder.set(m, choices[m]);
      }
      if (!builder.fill(order, budget_)) continue;
      builder.prune(order, budget_);
      attempt(builder.choices(), Points::automatic);
      break;
    }
    if (finished()) return;
  }
}

std::optional<Solution> Search::solve(Bytes budget, Nanoseconds shortest, const SearchSeed& seed) {
  budget_ = budget;
  shortest_ = shortest;
  left_ = quota_;
  best_.reset();
  tried_.clear();
  if (!seed.choices.empty()) start_near(seed.choices);
  if (!seed.alone || !best_) start();
  if (best_) improve();
  if (!best_) return std::nullopt;
  return Solution{std::move(best_->candidate), std::move(best_->choices)};
}

}  // namespace stowage::planner
