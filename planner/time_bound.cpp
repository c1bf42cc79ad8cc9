#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "planner/bounds.h"
#include "planner/copy_jobs.h"
#include "planner/host_update_bound.h"
#include "planner/in_parallel.h"
#include "simulator/machine/link_model.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/step/op_spans.h"
#include "traces/units.h"

namespace stowage::planner {
namespace {

class StepBound {
 public:
  // `compute_time`: of recorded times, what compute takes.
  // `gain`: of rest, what compute gains by it, in parts of a million.
  StepBound(const Footprints& footprints, Bytes budget, Ppm compute_time, Ppm gain, int halvings)
      : footprints_(footprints),
        index_(footprints.index()),
        link_(index_.trace().calibration),
        budget_(budget),
        compute_time_(compute_time),
        gain_(gain),
        halvings_(halvings) {
    if (footprints_.counts_recompute()) find_given();
    for (const MovedUnit& unit : footprints_.units()) {
      add_unit(unit);
      if (const Option* again = find(unit.options, Choice::again); again != nullptr) {
        again_.push_back({&unit.options.front(), again});
      }
    }
  }

  // What matters above `known`: where it is not above that, anything up to it.
  [[nodiscard]] Nanoseconds at(std::int32_t position, Nanoseconds known) const {
    const std::size_t event = static_cast<std::size_t>(position) / 2;
    const Bytes wanted = footprints_.resident()[static_cast<std::size_t>(position)] - budget_;
    Jobs jobs;
    for (const UnitTimes& unit : units_) add(unit, position, jobs);
    const CopyJobs out(std::move(jobs.out));
    const CopyJobs back(std::move(jobs.back));
    const auto step = [&](Bytes away, Nanoseconds again) {
      const Bytes away_back = away - jobs.free_back;
      const Nanoseconds slow = slowdown(out, away);
      const Nanoseconds slow_back = slowdown(back, away_back);
      const Nanoseconds before = std::max({resident_until(event), out.earliest_done(away),
                                           scaled(index_.compute_until()[event]) + slow});
      const Nanoseconds after = std::max(back.earliest_done(away_back),
                                         compute_behind(position) + scaled(again) + slow_back);
      const Nanoseconds compute = scaled(index_.compute_until().back()) + scaled(again);
      return rested(std::max(compute, before + after), compute, slow + slow_back);
    };
    return again_.empty() ? step(wanted, 0) : with_again(position, wanted, known, step);
  }

 private:
  struct UnitAgain {
    const Option* keep;
    const Option* again;
  };
  // What an op frees by running again, and the work of that.
  struct Rerun {
    Bytes bytes = 0;
    Nanoseconds work = 0;
  };

  // The least over how much work runs again (planner/bounds.h). More work leaves less to copy: over
  // a span of work no step is shorter than with the least work and the fewest copies in it. The
  // span with the shortest one is halved, as long as that may matter.
  template <class StepOf>
  [[nodiscard]] Nanoseconds with_again(std::int32_t position, Bytes wanted, Nanoseconds known,
                                       const StepOf& step_of) const {
    Bytes free = 0;
    const std::vector<Rerun> reruns = reruns_at(position, free);
    Nanoseconds all = 0;
    for (const Rerun& each : reruns) all += each.work;
    const auto freed_by = [&](Nanoseconds work) {
      Bytes bytes = free;
      for (const Rerun& each : reruns) {
        if (each.work > work) {
          return bytes + static_cast<Bytes>(Wide{each.bytes} * work / each.work) + 1;
        }
        work -= each.work;
        bytes += each.bytes;
      }
      return bytes;
    };
    // With this much work, and what more of it frees.
    const auto step = [&](Nanoseconds work, Nanoseconds more) {
      return step_of(std::max<Bytes>(wanted - freed_by(more), 0), work);
    };
    struct Span {
      Nanoseconds shortest;
      Nanoseconds first;
      Nanoseconds last;
      bool operator>(const Span& other) const { return shortest > other.shortest; }
    };
    std::priority_queue<Span, std::vector<Span>, std::greater<>> spans;
    spans.push({step(0, all), 0, all});
    for (int i = 0; i < halvings_; ++i) {
      const Span span = spans.top();
      const Nanoseconds middle = span.first + (span.last - span.first) / 2;
      if (middle == span.first || step(middle, middle) <= known) break;
      spans.pop();
      spans.push({step(span.first, middle), span.first, middle});
      spans.push({step(middle, span.last), middle, span.last});
    }
    return spans.top().shortest;
  }

  // Densest first; `free`: what nobody asks for behind the position.
  [[nodiscard]] std::vector<Rerun> reruns_at(std::int32_t position, Bytes& free) const {
    std::map<OpId, Rerun> by_op;
    for (const UnitAgain& unit : again_) {
      const Bytes freed = unit.keep->bytes_at(position) - unit.again->bytes_at(position);
      if (freed <= 0) continue;
      const bool is_asked_for = unit.again->spans.back().first > position;
      if (!is_asked_for || unit.again->compute == 0) {
        free += freed;
        continue;
      }
      const auto [of, is_new] = by_op.try_emplace(unit.again->made_by);
      Rerun& rerun = of->second;
      rerun.work = is_new ? unit.again->compute : std::min(rerun.work, unit.again->compute);
      rerun.bytes += freed;
    }
    std::vector<Rerun> reruns;
    for (const auto& [op, rerun] : by_op) reruns.push_back(rerun);
    std::stable_sort(reruns.begin(), reruns.end(), [](const Rerun& a, const Rerun& b) {
      return Wide{a.bytes} * b.work > Wide{b.bytes} * a.work;
    });
    return reruns;
  }

  // What copies take of their lane, and how long the link moves bytes for them.
  struct Time {
    Nanoseconds all = 0;
    Nanoseconds moving = 0;
    Time& operator+=(const Time& other) {
      all += other.all;
      moving += other.moving;
      return *this;
    }
  };
  // Of one option: its copies out together, and each of those back.
  struct OptionTimes {
    const Option* option;
    Time out;
    Nanoseconds start = 0;  // of the first of them, at the earliest; 0 where there is none
    // Of model state each by itself: what is away has its last one behind it.
    std::vector<Time> outs;
    std::vector<Nanoseconds> starts;
    std::vector<Time> back;
  };
  struct UnitTimes {
    const Option* keep;
    std::vector<OptionTimes> options;
  };
  struct Jobs {
    std::vector<CopyJob> out;
    std::vector<CopyJob> back;  // mirrored in time
    Bytes free_back = 0;        // free with no copy back behind the position
  };

  [[nodiscard]] static Time time_of(const LinkCurve& curve, Bytes bytes) {
    const Nanoseconds all = simulator::transfer_ns(curve, bytes);
    return {all, all - std::min(all, curve.latency)};
  }
  [[nodiscard]] static Time least(const Time& a, const Time& b) {
    return {std::min(a.all, b.all), std::min(a.moving, b.moving)};
  }

  // How much longer compute takes while the link moves bytes for jobs worth `wanted`, at least, or
  // waits instead.
  [[nodiscard]] Nanoseconds slowdown(const CopyJobs& jobs, Bytes wanted) const {
    if (speed() == kPpm) return 0;
    return static_cast<Nanoseconds>(Wide{jobs.least_moving(wanted)} * (kPpm - speed()) / kPpm);
  }
  [[nodiscard]] Ppm speed() const {
    return std::clamp<Ppm>(link_.compute_interference, kPpm / 1000, kPpm);
  }
  // The least that a step of this length can take for what compute gains by its rests, of which
  // `busy` and `slow` are none.
  [[nodiscard]] Nanoseconds rested(Nanoseconds step, Nanoseconds busy, Nanoseconds slow) const {
    if (gain_ == 0) return step;
    // What the link moves in rests does not slow compute.
    const bool pays = gain_ < speed();
    const Wide gain = pays ? Wide{gain_} * kPpm / speed() + 1 : Wide{gain_};
    const Nanoseconds rests = step - busy - (pays ? slow : 0);
    return step - static_cast<Nanoseconds>(Wide{std::max<Nanoseconds>(rests, 0)} * gain / kPpm);
  }

  // A segment's input is packed where its layer is called, a chain's where an op reads it.
  void find_given() {
    const Trace& trace = index_.trace();
    given_.assign(trace.storages.size(), EventId());
    for (std::size_t row = trace.layer_tensors.size(); row-- > 0;) {
      const TensorId tensor = trace.layer_tensors.tensor[row];
      const StorageId of = tensor.valid() ? trace.tensors.storage[tensor.index()] : StorageId();
      if (of.valid()) given_[of.index()] = trace.layer_tensors.event[row];
    }
    const simulator::OpSpans spans(trace);
    for (std::size_t u = 0; u < trace.uses.size(); ++u) {
      const OpId op = trace.uses.op[u];
      const StorageId of = trace.tensors.storage[trace.uses.tensor[u].index()];
      if (!of.valid() || trace.ops.primitive[op.index()] == 0 || !spans.is_known(op)) continue;
      EventId& given = given_[of.index()];
      given = given.valid() ? std::min(given, spans.begin(op)) : spans.begin(op);
    }
  }

  void add_unit(const MovedUnit& unit) {
    UnitTimes times{&unit.options.front(), {}};
    for (std::size_t o = 1; o < unit.options.size(); ++o) {
      const Option& option = unit.options[o];
      if (option.choice == Choice::again) continue;
      OptionTimes& of = times.options.emplace_back();
      of.option = &option;
      for (const OptionCopy& copy : option.out) of.out += time_of(link_.d2h, copy.bytes);
      if (!option.out.empty()) {
        std::size_t pack = static_cast<std::size_t>(option.out.front().position) / 2;
        const EventId given = given_.empty() ? EventId() : given_[unit.storage.index()];
        if (given.valid()) pack = std::min(pack, given.index());
        of.start = resident_until(pack);
      }
      for (const OptionCopy& copy : option.out) {
        if (option.choice != Choice::always) break;
        of.outs.push_back(time_of(link_.d2h, copy.bytes));
        of.starts.push_back(resident_until(static_cast<std::size_t>(copy.position) / 2));
      }
      for (const OptionCopy& copy : option.back) of.back.push_back(time_of(link_.h2d, copy.bytes));
    }
    units_.push_back(std::move(times));
  }

  // The unit's options at their best, each by itself: the most that any frees, the shortest copies
  // of any. What an option frees without a copy, since the host has the bytes, is free here.
  void add(const UnitTimes& unit, std::int32_t position, Jobs& jobs) const {
    const Bytes kept = unit.keep->bytes_at(position);
    if (kept == 0) return;
    Bytes value = 0;
    Bytes kept_free = 0;  // of it what needs no copy back behind this position
    std::optional<Time> out;
    std::optional<Time> back;
    Nanoseconds start = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds behind = std::numeric_limits<Nanoseconds>::max();  // compute after the copy back
    for (const OptionTimes& of : unit.options) {
      const Bytes freed = kept - of.option->bytes_at(position);
      const auto [leaving, from] = leaving_at(of, position);
      out = out ? least(*out, leaving) : leaving;
      start = std::min(start, from);
      if (freed <= 0) continue;
      if (position < of.option->made) {  // of the step before
        value = std::max(value, freed);
        kept_free = std::max(kept_free, freed);
        continue;
      }
      // The next copy back that has not started on demand yet.
      const auto& copies = of.option->back;
      const auto next = std::upper_bound(
          copies.begin(), copies.end(), position,
          [](std::int32_t at, const OptionCopy& copy) { return at < copy.position; });
      if (next != copies.end()) {
        const Time& time = of.back[static_cast<std::size_t>(next - copies.begin())];
        back = back ? least(*back, time) : time;
        behind = std::min(behind, compute_behind(next->position));
      }
      value = std::max(value, freed);
      // The next buffer in place already, it still frees the rest.
      const Bytes buffer = next != copies.end() ? footprints_.buffer_bytes(next->bytes) : 0;
      kept_free = std::max(kept_free, freed - buffer);
    }
    if (value == 0) return;
    jobs.out.push_back({start, out->all, out->moving, value});
    jobs.free_back += kept_free;
    if (value > kept_free) {
      jobs.back.push_back({behind, back->all, back->moving, value - kept_free});
    }
  }

  // The copies out without which it is not away at this position, and their start at the earliest.
  // What leaves behind it only (optimizer state) was away at the step's begin.
  [[nodiscard]] static std::pair<Time, Nanoseconds> leaving_at(const OptionTimes& of,
                                                               std::int32_t position) {
    const std::vector<OptionCopy>& out = of.option->out;
    if (!out.empty() && out.front().position > position) return {Time(), 0};
    if (of.outs.empty()) return {of.out, of.start};
    std::size_t last = 0;
    while (last + 1 < out.size() && out[last + 1].position <= position) ++last;
    return {of.outs[last], of.starts[last]};
  }

  // Compute's work from this position to the step's end, at least.
  [[nodiscard]] Nanoseconds compute_behind(std::int32_t position) const {
    const auto& compute = index_.compute_until();
    return scaled(compute.back() - compute[static_cast<std::size_t>(position) / 2]);
  }
  [[nodiscard]] Nanoseconds resident_until(std::size_t event) const {
    return scaled(index_.resident_time()[event]);
  }
  [[nodiscard]] Nanoseconds scaled(Nanoseconds time) const {
    return static_cast<Nanoseconds>(Wide{time} * compute_time_ / kPpm);
  }

  const Footprints& footprints_;
  const simulator::StepIndex& index_;
  const Calibration& link_;
  Bytes budget_;
  Ppm compute_time_;
  Ppm gain_;
  int halvings_;  // of how much runs again
  std::vector<UnitTimes> units_;
  std::vector<UnitAgain> again_;
  std::vector<EventId> given_;  // by storage: the first event where a layer or an op is given it
};

// The highest of each segment, the last one of equals: nothing else there needs more copies.
std::vector<std::int32_t> positions_above(const Footprints& footprints, Bytes budget,
                                          std::size_t most, const std::vector<bool>& left_out) {
  std::vector<std::int32_t> positions;
  const std::vector<Bytes>& bytes = footprints.resident();
  std::vector<std::int32_t> starts = footprints.segment_starts();
  starts.push_back(footprints.positions());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    std::optional<std::int32_t> highest;
    for (std::int32_t p = starts[i]; p < starts[i + 1]; ++p) {
      const auto row = static_cast<std::size_t>(p);
      if (!left_out.empty() && left_out[row]) continue;
      if (!highest || bytes[row] >= bytes[static_cast<std::size_t>(*highest)]) highest = p;
    }
    if (highest && bytes[static_cast<std::size_t>(*highest)] > budget) {
      positions.push_back(*highest);
    }
  }
  constexpr std::size_t kMostOperations = 500'000;
  std::size_t jobs = 0;
  for (const Movable& movable : footprints.movable()) jobs += movable.storages.size();
  most =
      std::min(most, std::max<std::size_t>(kMostOperations / std::max<std::size_t>(jobs, 1), 16));
  if (positions.size() > most || footprints.counts_recompute()) {
    std::stable_sort(positions.begin(), positions.end(), [&](std::int32_t a, std::int32_t b) {
      return bytes[static_cast<std::size_t>(a)] > bytes[static_cast<std::size_t>(b)];
    });
    positions.resize(std::min(positions.size(), most));
  }
  return positions;
}

}  // namespace

Nanoseconds shortest_step(const Footprints& footprints, Bytes budget, std::size_t positions_most,
                          const std::vector<bool>& left_out) {
  const simulator::StepIndex& index = footprints.index();
  const Calibration& link = index.trace().calibration;
  const Nanoseconds resident = index.resident_time().back();
  if (!simulator::is_usable(link.d2h) || !simulator::is_usable(link.h2d)) return resident;
  const simulator::RestGain rests = simulator::rest_gain(link);
  const Ppm fastest = rests.boost == kPpm ? kPpm : kPpm * kPpm / rests.boost - 1;
  const Nanoseconds updated = shortest_with_host_updates(index, fastest);
  if (footprints.movable().empty()) return std::max(resident, updated);
  const std::vector<std::int32_t> positions =
      positions_above(footprints, budget, positions_most, left_out);
  const int halvings = positions_most == kAllPositions ? 24 : 6;
  const auto bound_at = [&](Ppm compute_time, Ppm gain) {
    const StepBound bound(footprints, budget, compute_time, gain, halvings);
    auto best = static_cast<Nanoseconds>(Wide{resident} * compute_time / kPpm);
    for (const std::int32_t position : positions) {
      const Nanoseconds step = bound.at(position, best);
      // A budget below the floor: no plan, so any bound holds.
      if (step < std::numeric_limits<Nanoseconds>::max() / 8) best = std::max(best, step);
    }
    return best;
  };
  if (rests.boost == kPpm) return std::max(bound_at(kPpm, 0), updated);
  const std::array<std::pair<Ppm, Ppm>, 2> both = {{{fastest, 0}, {kPpm, rests.saved_per_rest}}};
  std::array<Nanoseconds, 2> bounds{};
  const auto find = [&](std::size_t i) { bounds[i] = bound_at(both[i].first, both[i].second); };
  // Whoever asks for few positions has several to ask at once.
  if (positions_most == kAllPositions) {
    in_parallel(bounds.size(), find);
  } else {
    for (std::size_t i = 0; i < bounds.size(); ++i) find(i);
  }
  return std::max({resident, updated, bounds[0], bounds[1]});
}

}  // namespace stowage::planner
