// The allocator's model, period after period of a planned step: from the beginning of a process on,
// with the allocations ahead of the step as recorded (Trace::setup), or from where a real allocator
// is behind a step. What replay_allocator() and AllocatorOutlook look at.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/allocator/caching_allocator.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// The allocator's counters over a period: after each event, the instructions there included. What
// AllocatorCurve of the trace says of the recorded step. And where its blocks were.
struct AllocatorTrail {
  struct Place {
    Bytes address = 0;
    Bytes size = 0;  // 0 = none
  };
  std::vector<Bytes> active;
  std::vector<Bytes> reserved;
  std::vector<Place> at_begin;  // by slot: the block that it has when the period begins
  std::vector<Place> made;      // by slot: that it gets in the period
  std::vector<Place> of_setup;  // by row of the setup: of no storage, there when the period begins
  std::vector<Place> segments;  // in order of address, when the period ends
};

class AllocatorPeriods {
 public:
  using Slot = AllocationSequence::Slot;

  // The allocator between two periods, and where in it what goes in the next one is.
  struct State {
    std::vector<CachingAllocator::Piece> layout;
    std::vector<Bytes> carried;  // addresses
    friend bool operator==(const State&, const State&) = default;
  };

  // Both outlive the object.
  AllocatorPeriods(const Trace& trace, const AllocationSequence& sequence, Bytes limit,
                   AddressOrder order);
  // Behind a period: the allocator's blocks, and the number of the one in which each slot is that
  // the next period frees, Pair::old for what is carried. All else that is allocated stays.
  AllocatorPeriods(const Trace& trace, const AllocationSequence& sequence,
                   const std::vector<ObservedBlock>& blocks,
                   const std::vector<std::pair<Slot, CachingAllocator::Block>>& slots);

  // The history ahead of the first step; then the own memory of what streams goes; then
  // segments are taken as take_segments() does; then the stays that wrap are allocated.
  // Returns the buffers that took the segments. False `is_complete`: a storage that lasts and that
  // no row makes was made up.
  std::vector<Bytes> start(const std::vector<Bytes>& segments);
  // For each segment, request_of_segment() bytes are asked for, again and again, until one is
  // taken; then all of that is freed. Returns the requests. Without memory the rest is left out.
  std::vector<Bytes> take_segments(const std::vector<Bytes>& segments);
  // The next period. The first one behind start() does what the setup says of it besides.
  void run(AllocatorTrail* trail = nullptr);

  [[nodiscard]] CachingAllocator& allocator() { return allocator_; }
  [[nodiscard]] State state() const;
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }
  // The setup has rows for the next period, so it is like no other.
  [[nodiscard]] bool has_setup_rows() const { return next_setup_ < setup_.size(); }

 private:
  using Block = CachingAllocator::Block;

  [[nodiscard]] Bytes bytes_of(Slot slot) const {
    return sequence_.bytes[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] Block& block(Slot slot) { return block_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] Bytes address(Slot slot) const;
  Block allocate(Bytes bytes);
  void allocate_all(const std::vector<Slot>& slots);
  void free(Slot slot) { allocator_.free(std::exchange(block(slot), CachingAllocator::kNoBlock)); }
  void set_up();
  void run_setup_row();
  void run_setup_behind(std::int64_t event, AllocatorTrail* trail);
  void note_until(std::size_t event, AllocatorTrail* trail);
  [[nodiscard]] AllocatorTrail::Place place_of(Block block) const;
  void note_begin(AllocatorTrail& trail) const;
  void note_segments(AllocatorTrail& trail) const;

  std::size_t events_;
  const Setup& setup_;
  const AllocationSequence& sequence_;
  CachingAllocator allocator_;
  std::vector<Block> block_;        // by slot
  std::vector<Block> setup_block_;  // by row of the setup
  std::size_t next_setup_ = 0;      // the row of the setup that comes next
  // Of active bytes ahead of one of the instructions at the event that is not noted yet.
  Bytes most_there_ = 0;
  bool is_complete_ = true;
  bool out_of_memory_ = false;
};

}  // namespace stowage::simulator
