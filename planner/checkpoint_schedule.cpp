#include "planner/checkpoint_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/budget.h"
#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/segments.h"
#include "simulator/step/unroll.h"

namespace stowage::planner {
namespace {

constexpr std::size_t kMostStates = 2000;  // a layer, and whether it runs again
constexpr int kMostRounds = 6;             // of choosing for less
constexpr int kMostDrops = 32;             // layers that are tried to be kept after all
constexpr Bytes kActiveWanders = 4096;     // as Planner::peak_with_allowance()

// The dynamic programme of least_work().
class Knapsack {
 public:
  Knapsack(const std::vector<ChainLayer>& layers, Bytes peak_behind, Bytes budget)
      : layers_(layers), budget_(budget), behind_(peak_behind - budget) {}

  std::optional<std::vector<bool>> run() {
    states_ = {{}};
    std::vector<std::size_t> front = {0};
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      std::vector<std::size_t> kept;
      std::vector<std::size_t> again;
      for (const std::size_t from : front) {
        if (states_[from].freed >= layers_[i].peak_kept - budget_) {
          kept.push_back(add(from, false, states_[from].freed, 0));
        }
        if (states_[from].freed >= layers_[i].peak_again - budget_) {
          const Bytes with = states_[from].again ? layers_[i].freed_with : 0;
          again.push_back(
              add(from, true, states_[from].freed + layers_[i].freed + with, layers_[i].work));
        }
      }
      front = best_of(std::move(kept));
      const std::vector<std::size_t> more = best_of(std::move(again));
      front.insert(front.end(), more.begin(), more.end());
    }
    std::optional<std::size_t> best;
    for (const std::size_t at : front) {
      if (states_[at].freed < behind_) continue;
      if (!best || states_[at].work < states_[*best].work) best = at;
    }
    if (!best) return std::nullopt;
    std::vector<bool> chosen(layers_.size());
    std::size_t at = *best;
    for (std::size_t i = layers_.size(); i-- > 0; at = states_[at].from) {
      chosen[i] = states_[at].again;
    }
    return chosen;
  }

 private:
  struct State {
    Bytes freed = 0;
    Nanoseconds work = 0;
    std::size_t from = 0;
    bool again = false;  // the last layer by then
  };

  std::size_t add(std::size_t from, bool again, Bytes freed, Nanoseconds work) {
    states_.push_back({freed, states_[from].work + work, from, again});
    return states_.size() - 1;
  }

  // Those that no other one beats, at most kMostStates: of each slot of bytes the least work.
  [[nodiscard]] std::vector<std::size_t> best_of(std::vector<std::size_t> all) const {
    std::sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
      const State& x = states_[a];
      const State& y = states_[b];
      return x.work != y.work ? x.work < y.work : x.freed > y.freed;
    });
    std::vector<std::size_t> front;
    for (const std::size_t at : all) {
      if (front.empty() || states_[at].freed > states_[front.back()].freed) front.push_back(at);
    }
    if (front.size() <= kMostStates) return front;
    const Bytes slot =
        std::max<Bytes>(states_[front.back()].freed / static_cast<Bytes>(kMostStates), 1);
    std::vector<std::size_t> thinned;
    for (const std::size_t at : front) {
      if (thinned.empty() || states_[at].freed / slot > states_[thinned.back()].freed / slot) {
        thinned.push_back(at);
      }
    }
    if (thinned.back() != front.back()) thinned.push_back(front.back());
    return thinned;
  }

  const std::vector<ChainLayer>& layers_;
  Bytes budget_;
  Bytes behind_;  // bytes that must be away behind the last layer
  std::vector<State> states_;
};

// Measures the layers of one recording.
class ChainMeter {
 public:
  ChainMeter(const simulator::StepIndex& recorded, const PolicyBudget& budget)
      : recorded_(recorded),
        budget_(budget.bytes),
        is_rounded_(budget.on != simulator::PeakKind::requested && recorded.rounds()),
        resident_(bytes_of(recorded)) {}

  Status measure(const std::vector<std::string>& names) {
    const simulator::SegmentFinder finder(recorded_.trace());
    for (const std::string& name : names) {
      Result<simulator::Segment> segment = finder.find(name);
      if (!segment) return std::move(segment).error();
      spans_.push_back({segment->first, segment->end, segment->runs_at});
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      Result<Step> alone = step_with({names[i]});
      if (!alone) return std::move(alone).error();
      layers_.push_back(layer_of(i, *alone));
    }
    for (std::size_t i = 1; i < names.size(); ++i) {
      Result<Step> both = step_with({names[i - 1], names[i]});
      if (!both) return std::move(both).error();
      layers_[i].freed_with =
          std::min<Bytes>(freed_behind(i, *both) - layers_[i - 1].freed - layers_[i].freed, 0);
    }
    return Unit{};
  }

  [[nodiscard]] const std::vector<ChainLayer>& layers() const { return layers_; }
  // Between the last layer's forward and its backward.
  [[nodiscard]] Bytes peak_behind() const {
    return highest(resident_, spans_.back().end, spans_.back().trigger);
  }

 private:
  struct Span {
    EventId first;  // [first, end) in forward
    EventId end;
    EventId trigger;  // where backward asks for it
  };
  struct Step {
    std::vector<Bytes> bytes;  // at each recorded event
    Bytes run = 0;             // the highest while layers run again
    Nanoseconds compute = 0;
  };

  // After each event.
  [[nodiscard]] std::vector<Bytes> bytes_of(const simulator::StepIndex& index) const {
    if (!is_rounded_) return index.resident_bytes();
    std::vector<Bytes> bytes = index.rounded_delta();
    Bytes now = index.rounded_bytes_at_begin();
    for (Bytes& each : bytes) each = now += each;
    return bytes;
  }
  [[nodiscard]] static Bytes highest(const std::vector<Bytes>& bytes, EventId first, EventId end) {
    const auto from = bytes.begin() + first.value;
    return first < end ? *std::max_element(from, bytes.begin() + end.value) : 0;
  }

  [[nodiscard]] Result<Step> step_with(std::vector<std::string> names) const {
    simulator::Structure structure;
    structure.recompute = std::move(names);
    const auto unrolled = simulator::unroll(recorded_.step().recording(), structure);
    if (!unrolled) return unrolled.error();
    const simulator::StepIndex index(*unrolled);
    const std::vector<Bytes> bytes = bytes_of(index);
    Step step{resident_, 0, index.compute_until().back()};
    std::vector<bool> runs(bytes.size(), false);
    for (const simulator::SegmentRows& rows : unrolled->segments()) {
      for (EventId e = rows.run_begin; e <= rows.run_end; ++e.value) {
        runs[e.index()] = true;
        step.run = std::max(step.run, bytes[e.index()]);
      }
    }
    for (std::size_t e = 0; e < bytes.size(); ++e) {
      const EventId origin = unrolled->origin(EventId(e)).row;
      if (origin.valid() && !runs[e]) step.bytes[origin.index()] = bytes[e];
    }
    return step;
  }

  // Forward of layer number i, up to the next one's, and its backward.
  [[nodiscard]] std::pair<EventId, EventId> forward_of(std::size_t i) const {
    const EventId next = i + 1 < spans_.size() ? spans_[i + 1].first : spans_[i].end;
    return {i > 0 ? spans_[i].first : EventId(0), next};
  }
  [[nodiscard]] std::pair<EventId, EventId> backward_of(std::size_t i) const {
    return {spans_[i].trigger, i > 0 ? spans_[i - 1].trigger : EventId(resident_.size())};
  }

  // By how much the peaks of the layers behind number i, and that behind the last one, are lower;
  // those within the budget do not count.
  [[nodiscard]] Bytes freed_behind(std::size_t i, const Step& step) const {
    std::optional<Bytes> freed;
    const auto look_at = [&](std::pair<EventId, EventId> span) {
      const Bytes without = highest(resident_, span.first, span.second);
      if (without <= budget_) return;
      const Bytes by = without - highest(step.bytes, span.first, span.second);
      freed = std::min(freed.value_or(by), by);
    };
    look_at({spans_.back().end, spans_.back().trigger});
    for (std::size_t k = i + 1; k < spans_.size(); ++k) {
      look_at(forward_of(k));
      look_at(backward_of(k));
    }
    return freed.value_or(0);
  }

  [[nodiscard]] ChainLayer layer_of(std::size_t i, const Step& alone) const {
    const auto peak = [&](const std::vector<Bytes>& bytes) {
      const auto [first, end] = forward_of(i);
      const auto [again, last] = backward_of(i);
      return std::max(highest(bytes, first, end), highest(bytes, again, last));
    };
    ChainLayer layer;
    layer.work = std::max<Nanoseconds>(alone.compute - recorded_.compute_until().back(), 0);
    layer.freed = std::max<Bytes>(freed_behind(i, alone), 0);
    layer.peak_kept = peak(resident_);
    layer.peak_again = std::max(peak(alone.bytes), alone.run);
    return layer;
  }

  const simulator::StepIndex& recorded_;
  Bytes budget_;
  bool is_rounded_;
  const std::vector<Bytes> resident_;
  std::vector<Span> spans_;
  std::vector<ChainLayer> layers_;
};

// What a set of layers comes to.
class ChainReplay {
 public:
  ChainReplay(const simulator::StepIndex& recorded, const std::vector<std::string>& names,
              const PolicyBudget& budget)
      : recorded_(recorded), names_(names), budget_(budget) {}

  [[nodiscard]] std::vector<std::string> names(const std::vector<bool>& chosen) const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (chosen[i]) out.push_back(names_[i]);
    }
    return out;
  }

  // Bytes above the budget.
  [[nodiscard]] Result<Bytes> above(const std::vector<bool>& chosen) const {
    simulator::Structure structure;
    structure.recompute = names(chosen);
    const auto step = simulator::unroll(recorded_.step().recording(), structure);
    if (!step) return step.error();
    const simulator::StepIndex index(*step);
    const auto lowering = simulator::lower(index, simulator::Plan());
    if (!lowering) return lowering.error();
    const simulator::ReplayResult result = simulator::replay(index, lowering->schedule);
    const Bytes peak = peak_of(result, budget_.on);
    const bool wanders = result.active_varies && budget_.on == simulator::PeakKind::active;
    return (wanders ? peak + peak / kActiveWanders : peak) - budget_.bytes;
  }

 private:
  const simulator::StepIndex& recorded_;
  const std::vector<std::string>& names_;
  const PolicyBudget& budget_;
};

// Layers that can keep after all, the one of the most work first.
Status drop_some(const ChainReplay& replay, const std::vector<ChainLayer>& layers,
                 std::vector<bool>& chosen) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return layers[a].work > layers[b].work; });
  if (order.size() > kMostDrops) order.resize(kMostDrops);
  for (const std::size_t i : order) {
    chosen[i] = false;
    const Result<Bytes> above = replay.above(chosen);
    if (!above) return above.error();
    if (*above > 0) chosen[i] = true;
  }
  return Unit{};
}

}  // namespace

std::optional<std::vector<bool>> least_work(const std::vector<ChainLayer>& layers,
                                            Bytes peak_behind, Bytes budget) {
  return Knapsack(layers, peak_behind, budget).run();
}

Result<std::vector<std::string>> layers_that_run_again(const simulator::StepIndex& recorded,
                                                       const std::vector<std::string>& layers,
                                                       const PolicyBudget& budget) {
  if (layers.empty()) return layers;
  ChainMeter meter(recorded, budget);
  if (Status measured = meter.measure(layers); !measured) return measured.error();
  const ChainReplay replay(recorded, layers, budget);
  Bytes within = budget.bytes;
  for (int round = 0; round < kMostRounds; ++round) {
    auto chosen = least_work(meter.layers(), meter.peak_behind(), within);
    if (!chosen) break;
    const Result<Bytes> above = replay.above(*chosen);
    if (!above) return above.error();
    if (*above <= 0) {
      if (Status status = drop_some(replay, meter.layers(), *chosen); !status) {
        return status.error();
      }
      return replay.names(*chosen);
    }
    within -= *above;
  }
  std::vector<bool> all(layers.size(), true);
  const Result<Bytes> above = replay.above(all);
  if (!above) return above.error();
  if (*above > 0) return layers;
  if (Status status = drop_some(replay, meter.layers(), all); !status) return status.error();
  return replay.names(all);
}

}  // namespace stowage::planner
