// Search::improve(): changes to the best set, each tried on the replayed step.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/search.h"
#include "planner/set_builder.h"
#include "simulator/lowering/lowering.h"
#include "simulator/schedule/schedule.h"

namespace stowage::planner {
namespace {

using Order = SearchSpace::Order;

// What compute waits for most is swapped with others, this many at most.
constexpr std::size_t kMostSwaps = 12;
constexpr std::size_t kMostAdded = 4;

}  // namespace

// The best set with its changes: how storages leave there, else as preferred.
class Search::Neighbour {
 public:
  explicit Neighbour(const Search& search)
      : choices_(search.best_->choices),
        how_(search.space_.ways_of(choices_).preferred),
        builder_(search.space_.changes(), how_) {
    for (std::size_t m = 0; m < how_.size(); ++m) {
      if (choices_[m] != Choice::keep) how_[m] = choices_[m];
    }
    for (std::size_t m = 0; m < how_.size(); ++m) {
      if (choices_[m] != Choice::keep) builder_.take(m);
    }
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  SetBuilder& builder() { return builder_; }

 private:
  std::vector<Choice> choices_;
  std::vector<Choice> how_;
  SetBuilder builder_;
};

bool Search::try_set(const SetBuilder& changed) {
  return changed.peak() <= budget_ && attempt(changed.choices(), best_->points);
}

// Members of the best set, those whose copies compute waited for the longest first, the others by
// bytes moved.
std::vector<std::size_t> Search::stalled_first() const {
  const auto& movable = space_.footprints().movable();
  std::vector<Nanoseconds> waited(movable.size(), 0);
  const auto lowered = simulator::lower(space_.footprints().index(), best_->candidate.decisions);
  if (lowered) {
    for (const simulator::Stall& stall : best_->candidate.result.stalls) {
      const StorageId storage = lowered->schedule.tenant(stall.stay).storage;
      if (const std::int32_t m = space_.movable_of(storage); m >= 0) {
        waited[static_cast<std::size_t>(m)] += stall.duration;
      }
    }
  }
  std::vector<std::size_t> members;
  for (std::size_t m = 0; m < movable.size(); ++m) {
    if (best_->choices[m] != Choice::keep) members.push_back(m);
  }
  std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return waited[a] != waited[b] ? waited[a] > waited[b] : movable[a].range() > movable[b].range();
  });
  return members;
}

// Identical layers together: all of them out or back.
void Search::move_groups() {
  std::optional<Neighbour> base;
  for (const auto& group : space_.groups()) {
    for (const bool leave : {false, true}) {
      if (finished() || evaluator_.over()) return;
      if (!base) base.emplace(*this);
      SetBuilder changed = base->builder();
      const auto inside =
          std::count_if(group.begin(), group.end(), [&](std::size_t m) { return changed.has(m); });
      if (leave ? inside == static_cast<std::ptrdiff_t>(group.size()) : inside == 0) continue;
      for (const std::size_t m : group) {
        if (leave) {
          changed.take(m);
        } else {
          changed.put_back(m);
        }
      }
      // What no longer fits is filled up from elsewhere.
      if (!leave) {
        std::vector<bool> is_member(changed.choices().size(), false);
        for (const std::size_t m : group) is_member[m] = true;
        Order others = space_.orders()[0];
        std::erase_if(others, [&](std::size_t m) { return is_member[m]; });
        if (!changed.fill(others, budget_)) continue;
      }
      if (try_set(changed)) {
        base.reset();
        break;
      }
    }
  }
}

// One back, if need be for another one.
void Search::move_stalled() {
  const std::vector<std::size_t> members = stalled_first();
  std::optional<Neighbour> base;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (finished() || evaluator_.over()) return;
    if (!base) base.emplace(*this);
    SetBuilder& builder = base->builder();
    if (!builder.has(members[i])) continue;
    builder.put_back(members[i]);
    bool better = try_set(builder);
    if (!better && i < kMostSwaps && builder.peak() > budget_) {
      for (const Order& order : space_.orders()) {
        SetBuilder swapped = builder;
        Order others = order;
        std::erase(others, members[i]);
        better = swapped.fill(others, budget_) && try_set(swapped);
        if (better) break;
      }
    }
    builder.take(members[i]);
    if (better) base.reset();
  }
}

// One more may make room for the reloads of the others.
void Search::move_one_more() {
  for (const Order& order : space_.orders()) {
    std::optional<Neighbour> base;
    std::size_t tried = 0;
    for (const std::size_t m : order) {
      if (tried >= kMostAdded || finished() || evaluator_.over()) break;
      if (!base) base.emplace(*this);
      SetBuilder& builder = base->builder();
      if (builder.has(m) || !builder.can_take(m)) continue;
      ++tried;
      builder.take(m);
      const bool better = try_set(builder);
      builder.put_back(m);
      if (better) base.reset();
    }
  }
}

void Search::move_points() {
  const std::vector<Choice> base = best_->choices;
  for (const Points other : {Points::automatic, Points::early_release, Points::on_demand}) {
    attempt(base, other);
  }
}

void Search::improve() {
  constexpr Nanoseconds kRounds = 10'000;  // a round that gains less than this part is the last
  Nanoseconds before = 0;
  do {
    before = best_->candidate.result.step_ns;
    move_groups();
    move_stalled();
    move_one_more();
    move_points();
  } while (!finished() && !evaluator_.over() &&
           before - best_->candidate.result.step_ns > before / kRounds);
}

}  // namespace stowage::planner
