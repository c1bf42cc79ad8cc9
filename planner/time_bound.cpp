#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "planner/bounds.h"
#include "planner/copy_jobs.h"
#include "simulator/machine/link_model.h"
#include "simulator/machine/rest_gain.h"
#include "traces/units.h"

namespace stowage::planner {
namespace {

class StepBound {
 public:
  // `compute_time`: of recorded times, what compute takes.
  StepBound(const Footprints& footprints, Bytes budget, Ppm compute_time)
      : footprints_(footprints),
        index_(footprints.index()),
        link_(index_.trace().calibration),
        budget_(budget),
        compute_time_(compute_time) {
    for (const Movable& movable : footprints_.movable()) {
      if (movable.is_layer()) {
        for (const StorageId storage : movable.storages) add_parameter(storage, movable);
        continue;
      }
      Copies copies{&movable, {}, {}};
      Time views;
      for (const Bytes bytes : movable.views) views += time_of(link_.d2h, bytes);
      copies.out = views;
      if (movable.allowed[1]) {
        const Time range = time_of(link_.d2h, movable.shared_range);
        copies.out = movable.allowed[2] ? least(range, views) : range;
      }
      for (const Bytes bytes : movable.unpack_bytes) {
        Time back = time_of(link_.h2d, bytes);
        if (movable.allowed[1]) back = least(back, time_of(link_.h2d, movable.shared_range));
        copies.back.push_back(back);
      }
      copies_.push_back(std::move(copies));
    }
  }

  [[nodiscard]] Nanoseconds at(std::int32_t position) const {
    const std::size_t event = static_cast<std::size_t>(position) / 2;
    const Bytes wanted = footprints_.resident()[static_cast<std::size_t>(position)] - budget_;
    Jobs jobs;
    for (const Copies& copies : copies_) add(copies, position, jobs);
    for (const Parameter& parameter : parameters_) add(parameter, position, jobs);
    const Bytes wanted_back = wanted - jobs.free_back;
    const Nanoseconds before =
        std::max({resident_until(event), earliest_done(jobs.out, wanted),
                  slowed(scaled(index_.compute_until()[event]), jobs.out, wanted)});
    const Nanoseconds after = std::max(earliest_done(jobs.back, wanted_back),
                                       slowed(compute_behind(position), jobs.back, wanted_back));
    return before + after;
  }

 private:
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
  // Of a storage with saved tensors.
  struct Copies {
    const Movable* movable;
    Time out;
    std::vector<Time> back;  // for each unpack
  };
  // Each parameter is loaded by its own copy, and has uses of its own.
  struct Parameter {
    Bytes bytes = 0;
    Time back;
    std::vector<const std::vector<FootprintSpan>*> ways;  // to stream
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

  // The least time in which compute does `work` while the link moves bytes for jobs worth `wanted`.
  [[nodiscard]] Nanoseconds slowed(Nanoseconds work, std::vector<CopyJob>& jobs,
                                   Bytes wanted) const {
    const Ppm speed = std::clamp<Ppm>(link_.compute_interference, kPpm / 1000, kPpm);
    if (speed == kPpm) return work;
    const Wide moving = least_moving(jobs, wanted);
    return work + static_cast<Nanoseconds>(moving * (kPpm - speed) / kPpm);
  }

  void add_parameter(StorageId storage, const Movable& movable) {
    Parameter parameter;
    parameter.bytes = footprints_.storage_bytes(storage);
    parameter.back = time_of(link_.h2d, index_.trace().storages.bytes[storage.index()]);
    for (const Choice choice : {Choice::forward, Choice::always}) {
      if (!movable.allowed[static_cast<std::size_t>(choice)]) continue;
      parameter.ways.push_back(&footprints_.parameter_spans(storage, choice));
    }
    parameters_.push_back(std::move(parameter));
  }

  void add(const Copies& copies, std::int32_t position, Jobs& jobs) const {
    const Movable& movable = *copies.movable;
    const Bytes kept = movable.bytes_at(Choice::keep, position);
    if (kept == 0) return;
    // The next unpack that has not started its reload on demand yet.
    const auto next =
        std::upper_bound(movable.unpack_events.begin(), movable.unpack_events.end(), position,
                         [](std::int32_t at, EventId unpack) { return at < 2 * unpack.value; });
    const bool returns = next != movable.unpack_events.end();
    const bool is_back = next != movable.unpack_events.begin();
    const auto row = static_cast<std::size_t>(next - movable.unpack_events.begin());
    // What is freed at most; what of it needs no copy back behind this position, since it stays
    // free with the next buffer in place already.
    Bytes value = 0;
    Bytes kept_free = 0;
    for (std::size_t c = 1; c < kChoices; ++c) {
      if (!movable.allowed[c]) continue;
      const auto choice = static_cast<Choice>(c);
      const Bytes freed = kept - movable.bytes_at(choice, position);
      if (freed <= 0) continue;
      value = std::max(value, freed);
      Bytes buffer = 0;
      if (choice == Choice::shared && !is_back && returns) buffer = movable.shared_range;
      if (choice == Choice::separate && returns) buffer = movable.unpack_bytes[row];
      kept_free = std::max(kept_free, freed - footprints_.buffer_bytes(buffer));
    }
    if (value == 0) return;
    jobs.out.push_back(
        {resident_until(movable.first_pack.index()), copies.out.all, copies.out.moving, value});
    jobs.free_back += kept_free;
    if (value > kept_free) {
      const Time& back = copies.back[row];
      jobs.back.push_back(
          {compute_behind(2 * next->value), back.all, back.moving, value - kept_free});
    }
  }

  // The host has it, unless the optimizer wrote, and it can be away from the step's begin on: its
  // way out is free. So is its way back where it comes only in the next step.
  void add(const Parameter& parameter, std::int32_t position, Jobs& jobs) const {
    constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
    bool away = false;
    std::int32_t back_at = 0;  // in the way that has it back last
    for (const auto* spans : parameter.ways) {
      std::int32_t start = kNone;
      bool here = false;
      for (const FootprintSpan& span : *spans) {
        here = here || (span.first <= position && position < span.last);
        if (span.first > position) start = std::min(start, span.first);
      }
      if (here) continue;
      away = true;
      back_at = std::max(back_at, start);
    }
    if (!away) return;
    jobs.out.push_back({0, 0, 0, parameter.bytes});
    if (back_at == kNone) {
      jobs.free_back += parameter.bytes;
    } else {
      jobs.back.push_back(
          {compute_behind(back_at), parameter.back.all, parameter.back.moving, parameter.bytes});
    }
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
  std::vector<Copies> copies_;
  std::vector<Parameter> parameters_;
};

// The highest of each segment, the last one of equals: nothing else there needs more copies.
std::vector<std::int32_t> positions_above(const Footprints& footprints, Bytes budget) {
  std::vector<std::int32_t> positions;
  const std::vector<Bytes>& bytes = footprints.resident();
  std::vector<std::int32_t> starts = footprints.segment_starts();
  starts.push_back(footprints.positions());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    std::int32_t highest = starts[i];
    for (std::int32_t p = starts[i]; p < starts[i + 1]; ++p) {
      if (bytes[static_cast<std::size_t>(p)] >= bytes[static_cast<std::size_t>(highest)]) {
        highest = p;
      }
    }
    if (starts[i] < starts[i + 1] && bytes[static_cast<std::size_t>(highest)] > budget) {
      positions.push_back(highest);
    }
  }
  constexpr std::size_t kMostOperations = 500'000;
  std::size_t jobs = 0;
  for (const Movable& movable : footprints.movable()) jobs += movable.storages.size();
  const std::size_t most =
      std::max<std::size_t>(kMostOperations / std::max<std::size_t>(jobs, 1), 16);
  if (positions.size() > most) {
    std::stable_sort(positions.begin(), positions.end(), [&](std::int32_t a, std::int32_t b) {
      return bytes[static_cast<std::size_t>(a)] > bytes[static_cast<std::size_t>(b)];
    });
    positions.resize(most);
  }
  return positions;
}

}  // namespace

Nanoseconds shortest_step(const Footprints& footprints, Bytes budget) {
  const simulator::StepIndex& index = footprints.index();
  const Calibration& link = index.trace().calibration;
  const Nanoseconds resident = index.resident_time().back();
  if (footprints.movable().empty() || !simulator::is_usable(link.d2h) ||
      !simulator::is_usable(link.h2d)) {
    return resident;
  }
  const std::vector<std::int32_t> positions = positions_above(footprints, budget);
  const auto bound_at = [&](Ppm compute_time) {
    const StepBound bound(footprints, budget, compute_time);
    auto best = static_cast<Nanoseconds>(Wide{resident} * compute_time / kPpm);
    for (const std::int32_t position : positions) {
      const Nanoseconds step = bound.at(position);
      // A budget below the floor: no plan, so any bound holds.
      if (step < std::numeric_limits<Nanoseconds>::max() / 8) best = std::max(best, step);
    }
    return best;
  };
  const Nanoseconds bound = bound_at(kPpm);
  const simulator::RestGain gain = simulator::rest_gain(link);
  if (gain.boost == kPpm) return bound;
  const Wide saved = Wide{bound - resident} * gain.saved_per_rest / kPpm;
  return std::max({resident, bound_at(kPpm * kPpm / gain.boost - 1),
                   bound - static_cast<Nanoseconds>(saved) - 1});
}

}  // namespace stowage::planner
