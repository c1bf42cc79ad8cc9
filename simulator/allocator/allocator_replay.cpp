#include "simulator/allocator/allocator_replay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"

namespace stowage::simulator {
namespace {

class Replay {
 public:
  Replay(const Trace& trace, const AllocationSequence& sequence, Bytes limit, AllocatorTrail* trail,
         std::vector<Bytes> segments_ahead, AddressOrder order)
      : trail_(trail), is_paired_(sequence.is_paired), periods_(trace, sequence, limit, order) {
    result_.segments_ahead = std::move(segments_ahead);
  }

  struct LongRun {
    bool takes_none_later = false;
    Bytes most_active = 0;  // in any period behind the first
  };

  // So many periods, until the state repeats or one behind the first takes a segment.
  LongRun run_until_later(std::int32_t periods) {
    most_periods_ = periods;
    stops_at_later_ = true;
    const bool takes_none_later = run().later_segments.empty();
    return {takes_none_later, most_active_};
  }

  AllocatorReplay run() {
    CachingAllocator& allocator = periods_.allocator();
    result_.buffers_ahead = periods_.start(result_.segments_ahead);
    result_.is_complete = is_paired_ && periods_.is_complete();
    // From the second period on: what the first one does besides (Setup::event) it does only once.
    std::vector<AllocatorPeriods::State> states{periods_.state()};
    const std::ptrdiff_t first = periods_.has_setup_rows() ? 1 : 0;
    std::vector<std::pair<Bytes, Bytes>> peaks;  // active and reserved of each period
    while (!result_.is_steady && result_.periods < most_periods_ && !periods_.out_of_memory()) {
      allocator.reset_peaks();
      periods_.run(trail_);
      if (result_.periods++ == 0) first_segments_ = allocator.segments_taken().size();
      peaks.emplace_back(allocator.peak_active(), allocator.peak_reserved());
      if (result_.periods > 1) most_active_ = std::max(most_active_, peaks.back().first);
      if (periods_.out_of_memory()) break;
      if (stops_at_later_ && allocator.segments_taken().size() > first_segments_) break;
      const AllocatorPeriods::State now = periods_.state();
      const auto same = std::find(states.begin() + first, states.end(), now);
      if (same != states.end()) {
        // The periods from there on repeat for ever.
        result_.is_steady = true;
        peaks.erase(peaks.begin(), peaks.begin() + (same - states.begin()));
      } else {
        states.push_back(now);
      }
    }
    result_.out_of_memory = periods_.out_of_memory();
    const std::vector<Bytes>& taken = allocator.segments_taken();
    result_.later_segments.assign(
        taken.begin() + static_cast<std::ptrdiff_t>(std::min(first_segments_, taken.size())),
        taken.end());
    if (!result_.is_steady && peaks.size() > 1) peaks.erase(peaks.begin());
    for (const auto& [active, reserved] : peaks) {
      result_.peak_active = std::max(result_.peak_active, active);
      result_.peak_reserved = std::max(result_.peak_reserved, reserved);
    }
    return result_;
  }

 private:
  AllocatorTrail* trail_;
  bool is_paired_;
  AllocatorPeriods periods_;
  std::size_t first_segments_ = 0;  // taken until the end of the first period
  std::int32_t most_periods_ = kMostPeriods;
  bool stops_at_later_ = false;
  Bytes most_active_ = 0;  // see LongRun
  AllocatorReplay result_;
};

// Chooses what is taken ahead of the first period.
class Reservation {
 public:
  Reservation(const Trace& trace, const AllocationSequence& sequence)
      : trace_(trace), sequence_(sequence), plain_(run({})) {}

  [[nodiscard]] AllocatorReplay best() const {
    std::vector<AllocatorReplay> tries{plain_};
    if (is_safe(tries.back())) return tries.back();
    while (tries.size() <= kMostTries && !tries.back().later_segments.empty()) {
      std::vector<Bytes> ahead = tries.back().segments_ahead;
      const std::vector<Bytes>& later = tries.back().later_segments;
      ahead.insert(ahead.end(), later.begin(), later.end());
      tries.push_back(run(ahead));
      if (is_safe(tries.back())) return tries.back();
    }
    for (const Bytes part : kParts) {
      const Bytes bytes = plain_.peak_active / 100 * part / kSegment * kSegment;
      tries.push_back(run({std::max(kLeastSegment, bytes)}));
      if (is_safe(tries.back())) return tries.back();
    }
    for (const AllocatorReplay& each : tries) {
      if (is_good(each)) return each;
    }
    return tries.front();
  }

 private:
  // Each try takes ahead what the one before took later.
  static constexpr std::size_t kMostTries = 4;
  // Then one segment of this many percent of the active bytes is tried; found on recorded steps.
  static constexpr Bytes kParts[] = {95, 80, 100, 60, 110};
  static constexpr std::int32_t kLong = 100;  // periods
  static constexpr std::int32_t kWhile = 16;
  static constexpr AddressOrder kOrders = 8;
  static constexpr Bytes kSegment = Bytes{2} << 20;
  static constexpr Bytes kLeastSegment = Bytes{20} << 20;

  [[nodiscard]] AllocatorReplay run(std::vector<Bytes> ahead) const {
    return Replay(trace_, sequence_, -1, nullptr, std::move(ahead), kFalling).run();
  }
  [[nodiscard]] bool is_good(const AllocatorReplay& r) const {
    return r.later_segments.empty() && r.peak_reserved <= plain_.peak_reserved / 20 * 21;
  }
  // Where the state does not repeat soon, the least thing that is not as modelled leads elsewhere:
  // what needs nothing for long, and nothing for a while in any of some orders of addresses, will
  // do. The active peak is the largest of all of these.
  [[nodiscard]] bool is_safe(AllocatorReplay& r) const {
    if (!is_good(r)) return false;
    if (r.is_steady) return true;
    for (AddressOrder order = 0; order <= kOrders; ++order) {
      Replay replay(trace_, sequence_, -1, nullptr, r.segments_ahead, order);
      const Replay::LongRun longer = replay.run_until_later(order == kFalling ? kLong : kWhile);
      r.peak_active = std::max(r.peak_active, longer.most_active);
      if (!longer.takes_none_later) return false;
    }
    return true;
  }

  const Trace& trace_;
  const AllocationSequence& sequence_;
  const AllocatorReplay plain_;
};

}  // namespace

AllocatorReplay replay_allocator(const StepIndex& index, const Schedule& schedule, Bytes limit,
                                 AllocatorTrail* trail) {
  // What is taken ahead does not depend on the limit: an executor does not know it.
  const AllocationSequence sequence = allocation_sequence(index, schedule);
  AllocatorReplay best = Reservation(index.trace(), sequence).best();
  if (limit < 0 && trail == nullptr) return best;
  AllocatorReplay replayed =
      Replay(index.trace(), sequence, limit, trail, best.segments_ahead, kFalling).run();
  if (limit < 0) replayed.peak_active = best.peak_active;
  return replayed;
}

AllocatorReplay replay_allocator_shortly(const StepIndex& index, const Schedule& schedule) {
  const AllocationSequence sequence = allocation_sequence(index, schedule);
  return Replay(index.trace(), sequence, -1, nullptr, {}, kFalling).run();
}

}  // namespace stowage::simulator
