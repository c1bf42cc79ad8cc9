#include "simulator/allocator_replay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/allocation_sequence.h"
#include "simulator/caching_allocator.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

using Block = CachingAllocator::Block;
using Slot = AllocationSequence::Slot;

// The allocator between two periods.
struct State {
  std::vector<CachingAllocator::Piece> layout;
  std::vector<Bytes> carried;  // addresses
  friend bool operator==(const State&, const State&) = default;
};

class Replay {
 public:
  Replay(const TraceIndex& index, const Schedule& schedule, Bytes limit, AllocatorTrail* trail,
         std::vector<Bytes> segments_ahead, AddressOrder order)
      : trail_(trail),
        events_(index.event_count()),
        setup_(index.trace().setup),
        sequence_(allocation_sequence(index, schedule)),
        allocator_(limit, order),
        block_(sequence_.bytes.size(), CachingAllocator::kNoBlock),
        setup_block_(setup_.size(), CachingAllocator::kNoBlock) {
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
    result_.is_complete = sequence_.is_paired;
    set_up();
    adopt();
    reserve();
    allocate_all(sequence_.made_before);
    // From the second period on: what the first one does besides (Setup::event) it does only once.
    std::vector<State> states{state()};
    const std::ptrdiff_t first = next_setup_ < setup_.size() ? 1 : 0;
    std::vector<std::pair<Bytes, Bytes>> peaks;  // active and reserved of each period
    while (!result_.is_steady && result_.periods < most_periods_ && !result_.out_of_memory) {
      allocator_.reset_peaks();
      run_period();
      if (result_.periods++ == 0) first_segments_ = allocator_.segments_taken().size();
      peaks.emplace_back(allocator_.peak_active(), allocator_.peak_reserved());
      if (result_.periods > 1) most_active_ = std::max(most_active_, peaks.back().first);
      if (result_.out_of_memory) break;
      if (stops_at_later_ && allocator_.segments_taken().size() > first_segments_) break;
      const State now = state();
      const auto same = std::find(states.begin() + first, states.end(), now);
      if (same != states.end()) {
        // The periods from there on repeat for ever.
        result_.is_steady = true;
        peaks.erase(peaks.begin(), peaks.begin() + (same - states.begin()));
      } else {
        states.push_back(now);
      }
    }
    const std::vector<Bytes>& taken = allocator_.segments_taken();
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
  [[nodiscard]] Bytes bytes_of(Slot slot) const {
    return sequence_.bytes[static_cast<std::size_t>(slot)];
  }
  Block& block(Slot slot) { return block_[static_cast<std::size_t>(slot)]; }

  Block allocate(Bytes bytes) {
    const Block made = allocator_.allocate(bytes);
    if (made != CachingAllocator::kOutOfMemory) return made;
    result_.out_of_memory = true;
    return CachingAllocator::kNoBlock;
  }
  void allocate_all(const std::vector<Slot>& slots) {
    for (const Slot slot : slots) {
      if (block(slot) == CachingAllocator::kNoBlock) {
        block(slot) = allocate(bytes_of(slot));
      }
    }
  }
  void free(Slot slot) { allocator_.free(std::exchange(block(slot), CachingAllocator::kNoBlock)); }

  // The history ahead of the first step. Lasting storages that no row makes are made up.
  void set_up() {
    std::vector<bool> is_known(block_.size(), false);
    for (const StorageId storage : setup_.storage) {
      if (storage.valid()) is_known[storage.index()] = true;
    }
    while (next_setup_ < setup_.size() && !setup_.event[next_setup_].valid()) run_setup_row();
    for (const Slot slot : sequence_.lasting) {
      if (is_known[static_cast<std::size_t>(slot)]) continue;
      result_.is_complete = false;
      block(slot) = allocate(bytes_of(slot));
    }
  }

  // What an executor does with streamed parameters ahead of the first period: their own memory
  // goes, then those that are there when a period begins come.
  void adopt() {
    for (const Slot slot : sequence_.adopted) free(slot);
    allocate_all(sequence_.wrapping);
  }

  // Without memory for all of it the rest is left out, as an executor does.
  void reserve() {
    std::vector<Block> held;
    bool full = false;
    for (const Bytes segment : result_.segments_ahead) {
      const std::size_t before = allocator_.segments_taken().size();
      const Bytes bytes = CachingAllocator::request_of_segment(segment);
      while (!full && allocator_.segments_taken().size() == before) {
        const Block made = allocator_.allocate(bytes);
        full = made == CachingAllocator::kOutOfMemory;
        if (full) break;
        held.push_back(made);
        result_.buffers_ahead.push_back(bytes);
      }
    }
    for (const Block block : held) allocator_.free(block);
  }

  void run_setup_row() {
    const std::size_t i = next_setup_++;
    if (setup_.free_of[i] >= 0) {
      const auto row = static_cast<std::size_t>(setup_.free_of[i]);
      allocator_.free(std::exchange(setup_block_[row], CachingAllocator::kNoBlock));
      return;
    }
    setup_block_[i] = allocate(setup_.bytes[i]);
    if (setup_.storage[i].valid()) block_[setup_.storage[i].index()] = setup_block_[i];
  }

  // What only the first period does, up to the gap behind `event`, its frees not included.
  void run_setup_behind(std::int64_t event) {
    for (; next_setup_ < setup_.size() && setup_.event[next_setup_].value <= event;) {
      if (trail_ != nullptr) note_until(setup_.event[next_setup_].index());
      run_setup_row();
    }
  }

  void run_period() {
    if (trail_ != nullptr) *trail_ = {};
    for (const AllocationSequence::Step& step : sequence_.period) {
      run_setup_behind(step.event.value - 1);
      if (trail_ != nullptr) note_until(step.event.index());
      if (step.free) {
        free(step.slot);
      } else {
        block(step.slot) = allocate(bytes_of(step.slot));
      }
      if (result_.out_of_memory) return;
    }
    run_setup_behind(static_cast<std::int64_t>(events_) - 1);
    if (trail_ != nullptr) note_until(events_);
    for (const Slot slot : sequence_.freed_behind) free(slot);
    for (const auto& [old, made] : sequence_.carried) {
      free(old);
      block(old) = std::exchange(block(made), CachingAllocator::kNoBlock);
    }
    allocate_all(sequence_.made_before);
  }

  void note_until(std::size_t event) {
    trail_->active.resize(event, allocator_.active());
    trail_->reserved.resize(event, allocator_.reserved());
  }

  [[nodiscard]] State state() {
    State now{allocator_.layout(), {}};
    for (const Slot slot : sequence_.made_before) now.carried.push_back(address(slot));
    for (const Slot slot : sequence_.wrapping) now.carried.push_back(address(slot));
    for (const auto& pair : sequence_.carried) now.carried.push_back(address(pair.old));
    return now;
  }
  [[nodiscard]] Bytes address(Slot slot) {
    return block(slot) == CachingAllocator::kNoBlock ? -1 : allocator_.address_of(block(slot));
  }

  AllocatorTrail* trail_;
  std::size_t events_;
  const Setup& setup_;
  const AllocationSequence sequence_;
  CachingAllocator allocator_;
  std::vector<Block> block_;        // by slot
  std::vector<Block> setup_block_;  // by row of the setup
  std::size_t next_setup_ = 0;      // the row of the setup that comes next
  std::size_t first_segments_ = 0;  // taken until the end of the first period
  std::int32_t most_periods_ = kMostPeriods;
  bool stops_at_later_ = false;
  Bytes most_active_ = 0;  // see LongRun
  AllocatorReplay result_;
};

// Chooses what is taken ahead of the first period.
class Reservation {
 public:
  Reservation(const TraceIndex& index, const Schedule& schedule)
      : index_(index), schedule_(schedule), plain_(run({})) {}

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
    return Replay(index_, schedule_, -1, nullptr, std::move(ahead), kFalling).run();
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
      Replay replay(index_, schedule_, -1, nullptr, r.segments_ahead, order);
      const Replay::LongRun longer = replay.run_until_later(order == kFalling ? kLong : kWhile);
      r.peak_active = std::max(r.peak_active, longer.most_active);
      if (!longer.takes_none_later) return false;
    }
    return true;
  }

  const TraceIndex& index_;
  const Schedule& schedule_;
  const AllocatorReplay plain_;
};

}  // namespace

AllocatorReplay replay_allocator(const TraceIndex& index, const Schedule& schedule, Bytes limit,
                                 AllocatorTrail* trail) {
  // What is taken ahead does not depend on the limit: an executor does not know it.
  AllocatorReplay best = Reservation(index, schedule).best();
  if (limit < 0 && trail == nullptr) return best;
  AllocatorReplay replayed =
      Replay(index, schedule, limit, trail, best.segments_ahead, kFalling).run();
  if (limit < 0) replayed.peak_active = best.peak_active;
  return replayed;
}

}  // namespace stowage::simulator
