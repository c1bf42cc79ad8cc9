#include "planner/search_space.h"

#include <algorithm>
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
  make_ways();
  make_orders();
  make_groups();
}

void SearchSpace::make_ways() {
  const auto& movable = footprints_.movable();
  const bool any_shard =
      std::any_of(movable.begin(), movable.end(), [](const Movable& m) { return m.is_layer(); });
  std::vector<Choice> streams = {Choice::keep};
  if (any_shard) streams.insert(streams.end(), {Choice::forward, Choice::always});
  for (const Choice stream : streams) {
    Ways ways;
    for (std::size_t m = 0; m < movable.size(); ++m) {
      Choice choice = movable[m].allows(Choice::shared) ? Choice::shared : Choice::separate;
      if (movable[m].is_layer()) choice = stream;
      if (movable[m].dominant == static_cast<std::int32_t>(Choice::keep)) choice = Choice::keep;
      const bool as_tight = !movable[m].is_layer() && tight_.choices[m] != Choice::keep;
      ways.preferred.push_back(choice);
      ways.tight.push_back(as_tight ? tight_.choices[m] : choice);
    }
    ways_.push_back(std::move(ways));
  }
}

std::int64_t SearchSpace::candidates() const {
  const auto& last = ways_.back().preferred;
  return std::count_if(last.begin(), last.end(),
                       [](Choice choice) { return choice != Choice::keep; });
}

void SearchSpace::make_orders() {
  const auto& movable = footprints_.movable();
  const std::size_t count = movable.size();
  const auto& time = footprints_.index().resident_time();
  Order by_pack(count);
  std::iota(by_pack.begin(), by_pack.end(), std::size_t{0});
  std::stable_sort(by_pack.begin(), by_pack.end(), [&](std::size_t a, std::size_t b) {
    return movable[a].leaves < movable[b].leaves;
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
    const auto& returns = m.returns();
    const std::size_t next =
        returns.empty() ? time.size() - 1 : static_cast<std::size_t>(returns.front().position) / 2;
    return static_cast<double>(time[next] - time[m.leaves.index()]);
  };
  const auto moved = [&](const Movable& m) {
    double sum = static_cast<double>(m.is_layer() ? 0 : m.range()) + 1;
    for (const OptionCopy& copy : m.returns()) sum += static_cast<double>(copy.bytes);
    return sum;
  };
  orders_ = {by_pack, by(idle), by([&](const Movable& m) { return bytes(m) * idle(m); }), by(bytes),
             by([&](const Movable& m) { return bytes(m) / moved(m) * idle(m); })};
  if (ways_.size() > 1) {  // what needs no copy out first
    for (const std::size_t base : {0U, 4U}) {
      orders_.push_back(orders_[base]);
      std::stable_partition(orders_.back().begin(), orders_.back().end(),
                            [&](std::size_t m) { return movable[m].is_layer(); });
    }
  }
}

void SearchSpace::make_groups() {
  const Trace& trace = footprints_.index().trace();
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t m = 0; m < footprints_.movable().size(); ++m) {
    if (ways_.back().preferred[m] == Choice::keep) continue;
    const Movable& movable = footprints_.movable()[m];
    const StringId name =
        movable.is_layer()
            ? trace.layers.name[movable.layer.index()]
            : trace.saved
                  .site[footprints_.index().saved_of(movable.storages.front()).front().index()];
    by_name[(movable.is_layer() ? "shard " : "") + without_numbers(trace.string(name))].push_back(
        m);
  }
  for (auto& [name, members] : by_name) {
    if (members.size() > 1) groups_.push_back(std::move(members));
  }
}

const Ways& SearchSpace::ways_of(const std::vector<Choice>& choices) const {
  if (std::find(choices.begin(), choices.end(), Choice::always) != choices.end()) {
    return ways_.back();
  }
  return ways_.size() > 1 ? ways_[1] : ways_.front();
}

}  // namespace stowage::planner
