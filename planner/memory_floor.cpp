#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/bounds.h"

namespace stowage::planner {
namespace {

std::string layer_name(const Trace& trace, LayerId layer) {
  return layer.valid() ? trace.string(trace.layers.name[layer.index()]) : std::string();
}

Choice smallest_at(const Movable& movable, std::int32_t position) {
  const Option* best = &movable.options.front();
  for (const Option& option : movable.options) {
    if (option.bytes_at(position) < best->bytes_at(position)) best = &option;
  }
  return best->choice;
}

std::size_t highest(const std::vector<Bytes>& curve) {
  return static_cast<std::size_t>(std::max_element(curve.begin(), curve.end()) - curve.begin());
}

void describe(const Footprints& footprints, std::int32_t position, MemoryFloor& floor) {
  const Trace& trace = footprints.index().trace();
  floor.event = EventId(position / 2);
  floor.op = trace.events.op[floor.event.index()];
  if (floor.op.valid()) {
    floor.op_name = trace.string(trace.ops.name[floor.op.index()]);
    floor.layer = layer_name(trace, trace.ops.layer[floor.op.index()]);
  } else {
    switch (trace.events.kind[floor.event.index()]) {
      case EventKind::layer_forward_begin:
      case EventKind::layer_forward_end:
      case EventKind::layer_backward_begin:
      case EventKind::layer_backward_end:
        floor.layer = layer_name(trace, LayerId(trace.events.ref[floor.event.index()]));
        break;
      default:
        break;
    }
  }

  std::vector<std::int32_t> movable_of(trace.storages.size(), -1);
  for (std::size_t m = 0; m < footprints.movable().size(); ++m) {
    for (const StorageId storage : footprints.movable()[m].storages) {
      movable_of[storage.index()] = static_cast<std::int32_t>(m);
    }
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.device[s] != 0 || footprints.is_previous(StorageId(s))) continue;
    FloorStorage alive;
    alive.storage = StorageId(s);
    if (movable_of[s] >= 0) {
      const Movable& movable = footprints.movable()[static_cast<std::size_t>(movable_of[s])];
      const Choice choice = movable.dominant >= 0 ? static_cast<Choice>(movable.dominant)
                                                  : smallest_at(movable, position);
      if (movable.is_layer()) {
        const std::vector<Option>& options = footprints.unit_of(alive.storage).options;
        const Option* const own = find(options, choice);
        alive.bytes = (own != nullptr ? *own : options.front()).bytes_at(position);
      } else {
        alive.bytes = movable.bytes_at(choice, position);
        alive.reloaded =
            choice != Choice::keep && position >= movable.option(choice)->spans.front().last;
      }
    } else {
      alive.bytes = footprints.natural_bytes_at(StorageId(s), position);
    }
    if (alive.bytes <= 0) continue;
    if (const OpId op = trace.storages.alloc_op[s]; op.valid()) {
      alive.made_by = trace.string(trace.ops.name[op.index()]);
    }
    alive.layer = layer_name(trace, trace.storages.layer[s]);
    alive.storage_class = trace.storages.storage_class[s];
    floor.storages.push_back(std::move(alive));
  }
  std::stable_sort(floor.storages.begin(), floor.storages.end(),
                   [](const FloorStorage& a, const FloorStorage& b) { return a.bytes > b.bytes; });
}

// Bytes at each position while choices change; O(positions) for a change's check.
class Descent {
 public:
  Descent(const Footprints& footprints, std::vector<Choice> choices)
      : footprints_(footprints), choices_(std::move(choices)), curve_(footprints.curve(choices_)) {}

  [[nodiscard]] Bytes peak() const { return curve_[highest(curve_)]; }
  [[nodiscard]] std::int32_t peak_position() const {
    return static_cast<std::int32_t>(highest(curve_));
  }
  [[nodiscard]] const std::vector<Choice>& choices() const { return choices_; }

  void set(std::size_t m, Choice choice) {
    apply(m, choices_[m], -1);
    choices_[m] = choice;
    apply(m, choices_[m], 1);
  }

 private:
  void apply(std::size_t m, Choice choice, Bytes sign) {
    const Movable& movable = footprints_.movable()[m];
    const Option* option = movable.option(choice);
    if (option == nullptr) option = &movable.options.front();
    for (const FootprintSpan& span : option->spans) {
      for (std::int32_t p = span.first; p < span.last; ++p) {
        curve_[static_cast<std::size_t>(p)] += sign * span.bytes;
      }
    }
  }

  const Footprints& footprints_;
  std::vector<Choice> choices_;
  std::vector<Bytes> curve_;
};

// All combinations of the open storages' choices; `best` is improved.
void try_all(const Footprints& footprints, const std::vector<std::size_t>& open, std::size_t next,
             Descent& descent, Bytes lowest, TightPlan& best) {
  if (best.peak <= lowest) return;
  if (next == open.size()) {
    if (descent.peak() < best.peak) best = {descent.choices(), descent.peak()};
    return;
  }
  const Movable& movable = footprints.movable()[open[next]];
  const Choice before = descent.choices()[open[next]];
  for (const Option& option : movable.options) {
    descent.set(open[next], option.choice);
    try_all(footprints, open, next + 1, descent, lowest, best);
  }
  descent.set(open[next], before);
}

}  // namespace

MemoryFloor memory_floor(const Footprints& footprints) {
  const std::vector<Bytes> lowest = footprints.lowest_curve();
  MemoryFloor floor;
  const std::size_t at = highest(lowest);
  floor.bytes = lowest[at];
  describe(footprints, static_cast<std::int32_t>(at), floor);
  floor.reached = tightest(footprints, floor).peak == floor.bytes;
  return floor;
}

TightPlan tightest(const Footprints& footprints, const MemoryFloor& floor) {
  const auto& movable = footprints.movable();
  const std::vector<Bytes> lowest = footprints.lowest_curve();
  const auto at = static_cast<std::int32_t>(highest(lowest));
  std::vector<Choice> choices(movable.size(), Choice::keep);
  std::vector<std::size_t> open;
  double combinations = 1;
  for (std::size_t m = 0; m < movable.size(); ++m) {
    if (movable[m].dominant >= 0) {
      choices[m] = static_cast<Choice>(movable[m].dominant);
      continue;
    }
    choices[m] = smallest_at(movable[m], at);
    open.push_back(m);
    combinations *= static_cast<double>(movable[m].options.size());
  }
  Descent descent(footprints, std::move(choices));
  TightPlan best{descent.choices(), descent.peak()};
  if (best.peak <= floor.bytes || open.empty()) return best;

  constexpr double kMostWork = 2e7;
  if (combinations * static_cast<double>(footprints.positions()) <= kMostWork) {
    try_all(footprints, open, 0, descent, floor.bytes, best);
    return best;
  }
  // Lower the highest position by one storage at a time, as long as that lowers the peak.
  constexpr int kMostRounds = 1000;
  for (int round = 0; round < kMostRounds && best.peak > floor.bytes; ++round) {
    const std::int32_t position = descent.peak_position();
    bool lowered = false;
    for (const std::size_t m : open) {
      const Choice before = descent.choices()[m];
      const Choice after = smallest_at(movable[m], position);
      if (after == before) continue;
      descent.set(m, after);
      if (descent.peak() < best.peak) {
        best = {descent.choices(), descent.peak()};
        lowered = true;
        break;
      }
      descent.set(m, before);
    }
    if (!lowered) break;
  }
  return best;
}

}  // namespace stowage::planner
