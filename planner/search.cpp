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
void Search::start(const Ways& ways, const std::vector<std::int64_t>& percents) {
  std::vector<std::vector<Choice>> sets;
  for (const std::int64_t percent : percents) {
    const Bytes target = std::max(space_.tight().peak, budget_ - budget_ / 100 * percent);
    for (const SearchSpace::Order& order : space_.orders()) {
      SetBuilder builder(space_.changes(), ways.preferred);
      if (builder.fill(order, target)) {
        builder.prune(order, target);
        sets.push_back(builder.choices());
        continue;
      }
      SetBuilder tighter(space_.changes(), ways.tight);
      if (!tighter.fill(order, target)) continue;
      tighter.prune(order, target);
      sets.push_back(tighter.choices());
    }
  }
  for (const auto& choices : sets) attempt(choices, Points::automatic);
}

void Search::start() {
  // Parameters that stay and those that come back for backward first; the third way moves more.
  for (const Ways& ways : space_.ways()) {
    const bool last = &ways == &space_.ways().back() && space_.ways().size() > 1;
    start(ways,
          last ? std::vector<std::int64_t>{0, 5} : std::vector<std::int64_t>{0, 2, 5, 10, 20});
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

std::optional<Candidate> Search::solve(Bytes budget, Nanoseconds shortest) {
  budget_ = budget;
  shortest_ = shortest;
  left_ = quota_;
  best_.reset();
  tried_.clear();
  start();
  if (best_) improve();
  if (!best_) return std::nullopt;
  return std::move(best_->candidate);
}

}  // namespace stowage::planner
