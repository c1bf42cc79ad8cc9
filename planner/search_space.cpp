#include "planner/search_space.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "planner/identical_names.h"

namespace stowage::planner {
SearchSpace::SearchSpace(const Footprints& footprints, const TightPlan& tight)
    : footprints_(footprints), tight_(tight), changes_(footprints) {
  const auto& movable = footprints_.movable();
  movable_of_.assign(footprints_.index().trace().storages.size(), -1);
  for (std::size_t m = 0; m < movable.size(); ++m) {
    for (const StorageId storage : movable[m].storages) {
      movable_of_[storage.index()] = static_cast<std::int32_t>(m);
    }
  }
  make_orders();
  make_groups();
}

std::vector<Choice> SearchSpace::ways_of(std::size_t movable) const {
  const Movable& of = footprints_.movable()[movable];
  std::vector<Choice> ways = {of.allows(Choice::shared) ? Choice::shared : Choice::separate};
  if (of.what == Moves::parameters) ways.assign(kStreamChoices.begin(), kStreamChoices.end());
  if (of.what == Moves::optimizer_state || of.what == Moves::gradients) ways = {Choice::always};
  const bool stays = of.dominant == static_cast<std::int32_t>(Choice::keep);
  std::erase_if(ways, [&](Choice choice) { return stays || !of.allows(choice); });
  return ways;
}

std::int64_t SearchSpace::candidates() const {
  std::int64_t count = 0;
  for (std::size_t m = 0; m < footprints_.movable().size(); ++m)
    count += ways_of(m).empty() ? 0 : 1;
  return count;
}

SearchSpace::Order SearchSpace::all() const {
  Order all;
  for (std::size_t m = 0; m < footprints_.movable().size(); ++m) {
    for (const Choice choice : ways_of(m)) {
      const bool is_both =
          choice == Choice::always && footprints_.movable()[m].what == Moves::parameters;
      if (!is_both) all.push_back({m, choice});
    }
  }
  return all;
}

namespace {

// What an order goes by.
struct Merits {
  WayOut way_out;
  EventId leaves;
  double idle = 0;  // nanoseconds
  double bytes = 0;
  double moved = 1;  // bytes
};

class MeritsOf {
 public:
  explicit MeritsOf(const Footprints& footprints)
      : footprints_(footprints), time_(footprints.index().resident_time()) {}

  [[nodiscard]] Merits operator()(const WayOut& way_out) const {
    const Movable& movable = footprints_.movable()[way_out.movable];
    Merits merits{way_out, movable.leaves};
    for (const StorageId s : movable.storages) {
      merits.bytes += static_cast<double>(footprints_.storage_bytes(s));
    }
    if (!movable.is_layer()) {
      merits.moved += static_cast<double>(movable.range());
      for (const OptionCopy& copy : movable.returns()) {
        merits.moved += static_cast<double>(copy.bytes);
      }
      const auto& returns = movable.returns();
      const std::size_t next = returns.empty()
                                   ? time_.size() - 1
                                   : static_cast<std::size_t>(returns.front().position) / 2;
      merits.idle = static_cast<double>(time_[next] - time_[movable.leaves.index()]);
      return merits;
    }
    const bool comes_and_goes = movable.what != Moves::parameters;
    merits.moved += comes_and_goes ? 2 * merits.bytes : merits.bytes;
    const Option& option = *movable.option(way_out.choice);
    merits.idle = held(movable.options.front()) - held(option);
    if (merits.bytes > 0) merits.idle /= merits.bytes;
    if (way_out.choice == Choice::backward) {
      for (const FootprintSpan& span : option.spans) {
        merits.leaves = std::max(merits.leaves, event_of(span.last));
      }
    }
    return merits;
  }

 private:
  [[nodiscard]] EventId event_of(std::int32_t position) const {
    return EventId(std::min(static_cast<std::size_t>(position) / 2, time_.size() - 1));
  }
  // Bytes times nanoseconds.
  [[nodiscard]] double held(const Option& option) const {
    double sum = 0;
    for (const FootprintSpan& span : option.spans) {
      const Nanoseconds there =
          time_[event_of(span.last).index()] - time_[event_of(span.first).index()];
      sum += static_cast<double>(span.bytes) * static_cast<double>(there);
    }
    return sum;
  }

  const Footprints& footprints_;
  const std::vector<Nanoseconds>& time_;
};

}  // namespace

void SearchSpace::make_orders() {
  const auto& movable = footprints_.movable();
  std::vector<Merits> all_merits;
  const MeritsOf merits(footprints_);
  for (const WayOut& way_out : all()) {
    all_merits.push_back(merits(way_out));
  }
  std::stable_sort(all_merits.begin(), all_merits.end(),
                   [](const Merits& a, const Merits& b) { return a.leaves < b.leaves; });
  const auto by = [&](auto&& more_is_better) {
    std::vector<Merits> sorted = all_merits;
    std::stable_sort(sorted.begin(), sorted.end(), [&](const Merits& a, const Merits& b) {
      return more_is_better(a) > more_is_better(b);
    });
    Order order;
    for (const Merits& each : sorted) order.push_back(each.way_out);
    return order;
  };
  orders_ = {by([](const Merits&) { return 0; }), by([](const Merits& m) { return m.idle; }),
             by([](const Merits& m) { return m.bytes * m.idle; }),
             by([](const Merits& m) { return m.bytes; }),
             by([](const Merits& m) { return m.bytes / m.moved * m.idle; })};
  const std::vector<Order> all = std::move(orders_);
  orders_.clear();
  // Model state that may leave besides, fewer kinds first. Gradients always, where they may: what
  // can be done without them was searched for already (planner/plan_as_recorded.cpp).
  using Kinds = std::vector<Moves>;
  const auto has = [&](Moves kind) {
    return std::any_of(all.front().begin(), all.front().end(), [&](const WayOut& way_out) {
      return movable[way_out.movable].what == kind;
    });
  };
  const bool has_gradients = has(Moves::gradients);
  for (Kinds kinds : {Kinds{}, Kinds{Moves::parameters}, Kinds{Moves::optimizer_state},
                      Kinds{Moves::parameters, Moves::optimizer_state}}) {
    if (has_gradients) kinds.push_back(Moves::gradients);
    const auto is_of = [&](const WayOut& way_out) {
      return std::find(kinds.begin(), kinds.end(), movable[way_out.movable].what) != kinds.end();
    };
    if (!std::all_of(kinds.begin(), kinds.end(), has)) continue;
    std::vector<Order> orders = all;
    for (Order& order : orders) {
      std::erase_if(order, [&](const WayOut& way_out) {
        return movable[way_out.movable].is_layer() && !is_of(way_out);
      });
    }
    const std::size_t first = orders_.size();
    orders_.insert(orders_.end(), orders.begin(), orders.end());
    for (const std::size_t base : {0U, 4U}) {
      if (kinds.empty()) break;
      orders_.push_back(orders_[first + base]);
      std::stable_partition(orders_.back().begin(), orders_.back().end(), is_of);
    }
  }
  tight_orders_ = orders_;
  for (Order& order : tight_orders_) {
    for (WayOut& way_out : order) {
      const Choice tight = tight_.choices[way_out.movable];
      if (!movable[way_out.movable].is_layer() && tight != Choice::keep) way_out.choice = tight;
    }
  }
}

void SearchSpace::make_groups() {
  const Trace& trace = footprints_.index().trace();
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t m = 0; m < footprints_.movable().size(); ++m) {
    if (ways_of(m).empty()) continue;
    const Movable& movable = footprints_.movable()[m];
    const StringId name =
        movable.is_layer()
            ? trace.layers.name[movable.layer.index()]
            : trace.saved
                  .site[footprints_.index().saved_of(movable.storages.front()).front().index()];
    constexpr std::array kPrefix = {"", "shard ", "state ", "gradient "};  // as Moves
    by_name[kPrefix[static_cast<std::size_t>(movable.what)] + without_numbers(trace.string(name))]
        .push_back(m);
  }
  for (auto& [name, members] : by_name) {
    if (members.size() > 1) groups_.push_back(std::move(members));
  }
}

}  // namespace stowage::planner
