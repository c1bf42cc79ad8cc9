#include "planner/search.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "planner/set_builder.h"
#include "simulator/lowering.h"
#include "simulator/schedule.h"

namespace stowage::planner {

using simulator::ReleasePoint;
using simulator::ReloadPoint;

namespace {

// "layers.3.mlp#2" -> "layers.#.mlp#2": the same for identical layers.
std::string without_numbers(const std::string& site) {
  std::string out;
  const std::size_t end = std::min(site.rfind('#'), site.size());
  for (std::size_t i = 0; i < site.size(); ++i) {
    const bool digit = i < end && site[i] >= '0' && site[i] <= '9';
    if (!digit) {
      out += site[i];
    } else if (out.empty() || out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

// What compute waited for.
StorageId storage_of(const simulator::Schedule& schedule, const simulator::Stall& stall) {
  if (!stall.residency.valid()) return schedule.offloads[stall.offload.index()].storage;
  const simulator::Residency& residency = schedule.residencies[stall.residency.index()];
  return schedule.parameters[residency.parameter.index()].storage;
}

// Bytes that go over the link each way.
Bytes range(const Movable& movable) {
  if (!movable.is_shard()) return movable.shared_range;
  return movable.unpack_bytes.empty() ? 0 : movable.unpack_bytes.front();
}

}  // namespace

Search::Search(const Footprints& footprints, const TightPlan& tight, Evaluator& evaluator,
               std::int64_t quota)
    : footprints_(footprints), changes_(footprints), tight_(tight), evaluator_(evaluator), quota_(quota) {
  const auto& movable = footprints_.movable();
  movable_of_.assign(footprints_.index().trace().storages.size(), -1);
  for (std::size_t m = 0; m < movable.size(); ++m) {
    for (const StorageId storage : movable[m].storages) {
      movable_of_[storage.index()] = static_cast<std::int32_t>(m);
    }
  }
  make_ways();
  make_orders();
  make_groups();
}

void Search::make_ways() {
  const auto& movable = footprints_.movable();
  const bool any_shard =
      std::any_of(movable.begin(), movable.end(), [](const Movable& m) { return m.is_shard(); });
  std::vector<Choice> streams = {Choice::keep};
  if (any_shard) streams.insert(streams.end(), {Choice::forward, Choice::always});
  for (const Choice stream : streams) {
    Ways ways;
    for (std::size_t m = 0; m < movable.size(); ++m) {
      Choice choice = movable[m].allowed[1] ? Choice::shared : Choice::separate;
      if (movable[m].is_shard()) choice = stream;
      if (movable[m].dominant == static_cast<std::int32_t>(Choice::keep)) choice = Choice::keep;
      const bool as_tight = !movable[m].is_shard() && tight_.choices[m] != Choice::keep;
      ways.preferred.push_back(choice);
      ways.tight.push_back(as_tight ? tight_.choices[m] : choice);
    }
    ways_.push_back(std::move(ways));
  }
}

std::int64_t Search::candidates() const {
  const auto& last = ways_.back().preferred;
  return std::count_if(last.begin(), last.end(),
                       [](Choice choice) { return choice != Choice::keep; });
}

void Search::make_orders() {
  const auto& movable = footprints_.movable();
  const std::size_t count = movable.size();
  const auto& time = footprints_.index().resident_time();
  Order by_pack(count);
  std::iota(by_pack.begin(), by_pack.end(), std::size_t{0});
  std::stable_sort(by_pack.begin(), by_pack.end(), [&](std::size_t a, std::size_t b) {
    return movable[a].first_pack < movable[b].first_pack;
  });
  const auto by = [&](auto&& more_is_better) {
    std::vector<double> key(count);
    for (std::size_t m = 0; m < count; ++m) key[m] = more_is_better(movable[m]);
    Order order = by_pack;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key[a] > key[b]; });
    return order;
  };
  const auto bytes = [&](const Movable& m) {
    double sum = 0;
    for (const StorageId s : m.storages) sum += static_cast<double>(footprints_.storage_bytes(s));
    return sum;
  };
  const auto idle = [&](const Movable& m) {
    const EventId next =
        m.unpack_events.empty() ? EventId(time.size() - 1) : m.unpack_events.front();
    return static_cast<double>(time[next.index()] - time[m.first_pack.index()]);
  };
  const auto moved = [&](const Movable& m) {
    double sum = static_cast<double>(m.shared_range) + 1;
    for (const Bytes view : m.unpack_bytes) sum += static_cast<double>(view);
    return sum;
  };
  orders_ = {by_pack, by(idle), by([&](const Movable& m) { return bytes(m) * idle(m); }), by(bytes),
             by([&](const Movable& m) { return bytes(m) / moved(m) * idle(m); })};
  if (ways_.size() > 1) {  // what needs no copy out first
    for (const std::size_t base : {0U, 4U}) {
      orders_.push_back(orders_[base]);
      std::stable_partition(orders_.back().begin(), orders_.back().end(),
                            [&](std::size_t m) { return movable[m].is_shard(); });
    }
  }
}

void Search::make_groups() {
  const Trace& trace = footprints_.index().trace();
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t m = 0; m < footprints_.movable().size(); ++m) {
    if (ways_.back().preferred[m] == Choice::keep) continue;
    const Movable& movable = footprints_.movable()[m];
    const StringId name =
        movable.is_shard()
            ? trace.layers.name[movable.layer.index()]
            : trace.saved
                  .site[footprints_.index().saved_of(movable.storages.front()).front().index()];
    by_name[(movable.is_shard() ? "shard " : "") + without_numbers(trace.string(name))].push_back(
        m);
  }
  for (auto& [name, members] : by_name) {
    if (members.size() > 1) groups_.push_back(std::move(members));
  }
}

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
  simulator::Decisions decisions = footprints_.decisions(choices, release, reload);
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
    const Bytes target = std::max(tight_.peak, budget_ - budget_ / 100 * percent);
    for (const Order& order : orders_) {
      SetBuilder builder(changes_, ways.preferred);
      if (builder.fill(order, target)) {
        builder.prune(order, target);
        sets.push_back(builder.choices());
        continue;
      }
      SetBuilder tighter(changes_, ways.tight);
      if (!tighter.fill(order, target)) continue;
      tighter.prune(order, target);
      sets.push_back(tighter.choices());
    }
  }
  for (const auto& choices : sets) attempt(choices, Points::automatic);
}

void Search::start() {
  // Parameters that stay and those that come back for backward first; the third way moves more.
  for (const Ways& ways : ways_) {
    const bool last = &ways == &ways_.back() && ways_.size() > 1;
    start(ways,
          last ? std::vector<std::int64_t>{0, 5} : std::vector<std::int64_t>{0, 2, 5, 10, 20});
  }
  attempt(tight_.choices, Points::tight);
  attempt(tight_.choices, Points::automatic);
  if (best_) {
    const std::vector<Choice> choices = best_->choices;
    attempt(choices, Points::early_release);
    attempt(choices, Points::on_demand);
    attempt(choices, Points::tight);
  }
}

// Members of the best set, those whose copies compute waited for the longest first, the others by
// bytes moved.
std::vector<std::size_t> Search::stalled_first() const {
  const auto& movable = footprints_.movable();
  std::vector<Nanoseconds> waited(movable.size(), 0);
  const auto lowered = simulator::lower(footprints_.index(), best_->candidate.decisions);
  if (lowered) {
    for (const simulator::Stall& stall : best_->candidate.result.stalls) {
      const StorageId storage = storage_of(lowered->schedule, stall);
      if (const std::int32_t m = movable_of_[storage.index()]; m >= 0) {
        waited[static_cast<std::size_t>(m)] += stall.duration;
      }
    }
  }
  std::vector<std::size_t> members;
  for (std::size_t m = 0; m < movable.size(); ++m) {
    if (best_->choices[m] != Choice::keep) members.push_back(m);
  }
  std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return waited[a] != waited[b] ? waited[a] > waited[b] : range(movable[a]) > range(movable[b]);
  });
  return members;
}

// Of a set in which parameters stream in one way: that way, else the one that is likely cheapest.
const Search::Ways& Search::ways_of(const std::vector<Choice>& choices) const {
  if (std::find(choices.begin(), choices.end(), Choice::always) != choices.end()) {
    return ways_.back();
  }
  return ways_.size() > 1 ? ways_[1] : ways_.front();
}

void Search::improve() {
  constexpr std::size_t kMostSwaps = 12;
  for (bool better = true; better && !finished() && !evaluator_.over();) {
    better = false;
    const std::vector<Choice> base = best_->choices;
    const Points points = best_->points;
    const auto builder_of = [&](const std::vector<Choice>& choices) {
      // How storages leave here: as in the set, else as preferred.
      std::vector<Choice> how = ways_of(choices).preferred;
      for (std::size_t m = 0; m < how.size(); ++m) {
        if (choices[m] != Choice::keep) how[m] = choices[m];
      }
      return how;
    };
    const std::vector<Choice> how = builder_of(base);
    SetBuilder builder(changes_, how);
    for (std::size_t m = 0; m < base.size(); ++m) {
      if (base[m] != Choice::keep) builder.take(m);
    }
    const auto try_it = [&](const SetBuilder& changed) {
      if (changed.peak() > budget_) return false;
      if (attempt(changed.choices(), points)) return better = true;
      return false;
    };

    // Identical layers together: all of them out or back.
    for (const auto& group : groups_) {
      if (better) break;
      const auto inside =
          std::count_if(group.begin(), group.end(), [&](std::size_t m) { return builder.has(m); });
      for (const bool leave : {false, true}) {
        if (leave ? inside == static_cast<std::ptrdiff_t>(group.size()) : inside == 0) continue;
        SetBuilder changed = builder;
        for (const std::size_t m : group) {
          if (leave) {
            changed.take(m);
          } else {
            changed.put_back(m);
          }
        }
        // What no longer fits is filled up from elsewhere.
        if (!leave) {
          Order others = orders_[0];
          std::erase_if(others, [&](std::size_t m) {
            return std::find(group.begin(), group.end(), m) != group.end();
          });
          if (!changed.fill(others, budget_)) continue;
        }
        if (try_it(changed)) break;
      }
    }
    if (better) continue;

    const std::vector<std::size_t> members = stalled_first();
    for (std::size_t i = 0; i < members.size() && !better && !finished(); ++i) {
      builder.put_back(members[i]);
      if (!try_it(builder) && i < kMostSwaps && builder.peak() > budget_) {
        for (const Order& order : orders_) {
          SetBuilder swapped = builder;
          Order others = order;
          std::erase(others, members[i]);
          if (swapped.fill(others, budget_) && try_it(swapped)) break;
        }
      }
      builder.take(members[i]);
    }
    if (better) continue;

    // One more may make room for the reloads of the others.
    for (const Order& order : orders_) {
      std::size_t tried = 0;
      for (const std::size_t m : order) {
        if (better || tried >= kMostSwaps / 3) break;
        if (builder.has(m) || !builder.can_take(m)) continue;
        ++tried;
        builder.take(m);
        try_it(builder);
        builder.put_back(m);
      }
    }
    if (better) continue;

    for (const Points other : {Points::automatic, Points::early_release, Points::on_demand}) {
      if (attempt(base, other)) better = true;
    }
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
