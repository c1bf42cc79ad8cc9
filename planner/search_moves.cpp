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

// The best set, to be changed.
SetBuilder Search::best_set() const {
  SetBuilder set(space_.changes());
  for (std::size_t m = 0; m < best_->choices.size(); ++m) {
    if (best_->choices[m] != Choice::keep) set.set(m, best_->choices[m]);
  }
  return set;
}

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

// Identical layers together: all of them back, or out in the same way.
void Search::move_groups() {
  for (const auto& group : space_.groups()) {
    std::vector<Choice> all = space_.ways_of(group.front());
    all.insert(all.begin(), Choice::keep);
    for (const Choice choice : all) {
      if (finished() || evaluator_.over()) return;
      const bool is_so = std::all_of(group.begin(), group.end(),
                                     [&](std::size_t m) { return best_->choices[m] == choice; });
      if (is_so) continue;
      SetBuilder changed = best_set();
      for (const std::size_t m : group) {
        const bool allows = space_.footprints().movable()[m].allows(choice);
        changed.set(m, allows ? choice : space_.ways_of(m).front());
      }
      // What no longer fits is filled up from elsewhere.
      if (choice != Choice::keep || fill_without(group, space_.orders()[0], changed)) {
        if (try_set(changed)) break;
      }
    }
  }
}

// None of these leaves for it.
bool Search::fill_without(const std::vector<std::size_t>& group, Order order,
                          SetBuilder& set) const {
  std::vector<bool> is_member(set.choices().size(), false);
  for (const std::size_t m : group) is_member[m] = true;
  std::erase_if(order, [&](const WayOut& way_out) { return is_member[way_out.movable]; });
  return set.fill(order, budget_);
}

// One back, or out in another way, if need be for another one.
void Search::move_stalled() {
  const std::vector<std::size_t> members = stalled_first();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t m = members[i];
    if (best_->choices[m] == Choice::keep) continue;
    std::vector<Choice> others = space_.ways_of(m);
    others.insert(others.begin(), Choice::keep);
    for (const Choice choice : others) {
      if (choice == best_->choices[m]) continue;
      if (finished() || evaluator_.over()) return;
      SetBuilder changed = best_set();
      changed.set(m, choice);
      bool better = try_set(changed);
      if (!better && i < kMostSwaps && changed.peak() > budget_) {
        for (const Order& order : space_.orders()) {
          SetBuilder swapped = changed;
          better = fill_without({m}, order, swapped) && try_set(swapped);
          if (better) break;
        }
      }
      if (better) break;
    }
  }
}

// One more may make room for the reloads of the others.
void Search::move_one_more() {
  for (const Order& order : space_.orders()) {
    std::size_t tried = 0;
    for (const WayOut& way_out : order) {
      if (tried >= kMostAdded || finished() || evaluator_.over()) break;
      const Choice more = with(best_->choices[way_out.movable], way_out.choice);
      if (more == Choice::keep) continue;
      ++tried;
      SetBuilder changed = best_set();
      changed.set(way_out.movable, more);
      try_set(changed);
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
