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
  Replay(const TraceIndex& index, const Schedule& schedule, Bytes limit, AllocatorTrail* trail)
      : trail_(trail),
        events_(index.event_count()),
        setup_(index.trace().setup),
        sequence_(allocation_sequence(index, schedule)),
        allocator_(limit),
        block_(sequence_.bytes.size(), CachingAllocator::kNoBlock),
        setup_block_(setup_.size(), CachingAllocator::kNoBlock) {}

  AllocatorReplay run() {
    result_.is_complete = sequence_.is_paired;
    set_up();
    adopt();
    allocate_all(sequence_.made_before);
    // From the second period on: what the first one does besides (Setup::event) it does only once.
    std::vector<State> states{state()};
    const std::ptrdiff_t first = next_setup_ < setup_.size() ? 1 : 0;
    std::vector<std::pair<Bytes, Bytes>> peaks;  // active and reserved of each period
    while (!result_.is_steady && result_.periods < kMostPeriods && !result_.out_of_memory) {
      allocator_.reset_peaks();
      run_period();
      if (result_.periods++ == 0) first_segments_ = allocator_.segments_taken();
      peaks.emplace_back(allocator_.peak_active(), allocator_.peak_reserved());
      if (result_.out_of_memory) break;
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
    result_.later_segments = allocator_.segments_taken() - first_segments_;
    if (!result_.is_steady && !peaks.empty()) peaks.erase(peaks.begin(), peaks.end() - 1);
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
  std::vector<Block> block_;         // by slot
  std::vector<Block> setup_block_;   // by row of the setup
  std::size_t next_setup_ = 0;       // the row of the setup that comes next
  std::int64_t first_segments_ = 0;  // taken until the end of the first period
  AllocatorReplay result_;
};

}  // namespace

AllocatorReplay replay_allocator(const TraceIndex& index, const Schedule& schedule, Bytes limit,
                                 AllocatorTrail* trail) {
  return Replay(index, schedule, limit, trail).run();
}

}  // namespace stowage::simulator
