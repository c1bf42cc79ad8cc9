// Whether a planned step will take memory from the driver again, asked where a real allocator is
// behind a step: all addresses are known there, so nothing of it is a guess but those of segments
// that are yet to come. What a reservation ahead of the first step (allocator_replay.h) has to
// leave open, this decides, as long as there is a step to decide it behind.
//
// No history is needed: the allocator's blocks are as they are, and only those that the next step
// frees must be found among them. Those are load buffers, known by their tag, and what the step
// left behind (the gradients), known by size and order: the k-th allocation of a size that the
// recorded step leaves behind is the k-th of that size that the real one made and that is alive.
// Whatever else is allocated (the model, its optimizer's state, somebody else's tensors) stays.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simulator/allocator/allocator_periods.h"
#include "simulator/allocator/observed_allocator.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

struct Outlook {
  // False: what the step left behind was not found, or the recorded step does not repeat itself;
  // then nothing is said, and nothing is to be taken.
  bool known = false;
  // Steps looked at that take nothing once `segments` are taken; all there will ever be when
  // is_steady. `holds`: that is as far as was looked.
  std::int32_t periods = 0;
  bool is_steady = false;
  bool holds = false;
  // To be taken now, so that no step takes any: by allocating all buffers, then freeing them (see
  // AllocatorPeriods::take_segments()). The layout is then this one, or the driver places segments
  // otherwise than SegmentAddresses says, and another look must follow.
  std::vector<Bytes> segments;
  std::vector<Bytes> buffers;
  std::vector<CachingAllocator::Piece> layout;
  std::string described;  // for people: one line
};

class AllocatorOutlook {
 public:
  // Both outlive the object. `most_actions`: see look().
  AllocatorOutlook(const StepIndex& index, const Schedule& schedule,
                   std::int64_t most_actions = kMostActions);

  // `observed`: behind a step that went as planned, everything of it dropped. `first_serial`: its
  // own allocations have this number or a later one. It looks ahead until the allocator is in a
  // state that it was in before, for 1000 steps at most and for as many as `most_actions` allow.
  // Tried is to take now what would be taken later, and what would be taken then, up to four times:
  // in the end no more is reserved than without. Where that does not hold or has no room, segments
  // of 20, 64 and 256 MiB are tried: they lead a wandering allocator elsewhere, mostly for long.
  // Where no try holds, the one of the first kind that holds longest is chosen. Cost: 0.1 s a try
  // that holds (kMostActions, on a slow machine), less where it does not; 8 tries at most, mostly
  // one or two.
  [[nodiscard]] Outlook look(const ObservedAllocator& observed, std::int64_t first_serial) const;

  // The layout behind so many further steps; empty where it is not known.
  [[nodiscard]] std::vector<CachingAllocator::Piece> layout_after(const ObservedAllocator& observed,
                                                                  std::int64_t first_serial,
                                                                  std::int32_t periods) const;

  static constexpr std::int32_t kMostPeriods = 1000;
  static constexpr std::int64_t kMostActions = 1'000'000;  // allocations and frees

 private:
  using Slots = std::vector<std::pair<AllocationSequence::Slot, CachingAllocator::Block>>;
  struct Expected;
  struct Try {
    std::vector<Bytes> segments;
    std::vector<Bytes> buffers;
    std::vector<Bytes> later;
    std::vector<CachingAllocator::Piece> layout;
    std::int32_t periods = 0;
    bool is_steady = false;
  };

  // The blocks of all that the next period frees; else `why` not.
  [[nodiscard]] bool find_slots(const ObservedAllocator& observed, std::int64_t first_serial,
                                Slots& slots, std::string& why) const;
  [[nodiscard]] bool find_left_behind(const ObservedAllocator& observed, std::int64_t first_serial,
                                      Slots& slots, std::string& why) const;
  [[nodiscard]] bool find_loaded(const ObservedAllocator& observed, std::int64_t first_serial,
                                 Slots& slots, std::string& why) const;
  // What is to be found, with or without what only a first step of a process leaves behind.
  [[nodiscard]] std::vector<Expected> left_behind(bool first_step) const;
  [[nodiscard]] Try run(const ObservedAllocator& observed, const Slots& slots,
                        std::vector<Bytes> segments) const;

  const Trace& trace_;
  const AllocationSequence sequence_;
  std::int64_t most_actions_;
};

}  // namespace stowage::simulator
