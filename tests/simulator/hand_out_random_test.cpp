// What running steps are handed out of random plans' layouts, while tensors are kept, come besides
// and do not come: no byte has two owners, and what is as planned is served.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/hand_out_server.h"
#include "simulator/placement/memory_layout.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kLayoutPage = 4096;
constexpr PageChoice kLayoutPages{kLayoutPage, 1'000'000};

// Who has each byte of the memory, by the oldest way to know it.
class Memory {
 public:
  explicit Memory(const MemoryLayout& layout)
      : layout_(layout), owner_(static_cast<std::size_t>(layout.placement.bytes() / kUnit), -1) {}

  void take(std::int32_t range) {
    for_each(range, [&](std::int32_t& owner) {
      ASSERT_EQ(owner, -1) << "range " << range;
      owner = range;
    });
  }
  void give_back(std::int32_t range) {
    for_each(range, [&](std::int32_t& owner) { owner = -1; });
  }

 private:
  static constexpr Bytes kUnit = kPlacementAlignment;
  template <class F>
  void for_each(std::int32_t range, F&& visit) {
    const auto r = static_cast<std::size_t>(range);
    const DevicePlacement& placement = layout_.placement;
    for (Bytes at = 0; at < placed_bytes(layout_.bytes(range)); at += kUnit) {
      const Bytes byte = placement.offset[r] + at;
      const Bytes page = placement.pages_of[r][static_cast<std::size_t>(byte / kLayoutPage)];
      visit(owner_[static_cast<std::size_t>((page * kLayoutPage + byte % kLayoutPage) / kUnit)]);
    }
  }
  const MemoryLayout& layout_;
  std::vector<std::int32_t> owner_;
};

// Periods of a step as its plan has it. Some tensors are kept for a while, some allocations come
// besides, some do not come.
class RandomPeriods {
 public:
  RandomPeriods(const StepIndex& index, const Schedule& schedule, std::uint64_t seed)
      : storages_(static_cast<AllocationSequence::Slot>(index.trace().storages.size())),
        sequence_(allocation_sequence(index, schedule)),
        layout_(memory_layout(index, schedule, kLayoutPages)),
        server_(layout_),
        memory_(layout_),
        random_(seed),
        given_(sequence_.bytes.size(), -1) {}

  void run(bool as_planned) {
    server_.begin_period();
    EventId reached;
    next_of_first_ = is_first_ ? 0 : layout_.first_hand_outs.size();
    for (const AllocationSequence::Step& step : sequence_.period) {
      if (step.event != reached) make_extras(EventId(step.event.value - 1));
      if (step.event != reached && draw(3)) server_.reach(step.event);
      make_extras(step.event);
      reached = step.event;
      if (!as_planned && draw(20)) besides();
      step.free ? free(step.slot, as_planned) : allocate(step.slot, as_planned);
    }
    // What the next period frees, by its slot of there.
    for (const auto& [old, made] : sequence_.carried) {
      given_[static_cast<std::size_t>(old)] = given_[static_cast<std::size_t>(made)];
      given_[static_cast<std::size_t>(made)] = -1;
    }
    for (const auto slot : sequence_.freed_behind) free(slot, true);
    make_extras(EventId(std::numeric_limits<std::int32_t>::max()));
    server_.end_period();
    is_first_ = false;
    if (as_planned) return;
    for (const std::int32_t range : kept_) give_back(range);
    kept_.clear();
  }
  [[nodiscard]] const HandOutReport& report() const { return server_.report(); }
  // Of a first and another period.
  [[nodiscard]] std::int64_t planned_of_two() const { return extras_ - for_next_ + 2 * planned(); }
  [[nodiscard]] std::int64_t extras() const { return extras_; }
  [[nodiscard]] std::int64_t asked() const { return asked_; }
  [[nodiscard]] std::int64_t of_several_pages() const {
    const DevicePlacement& placement = layout_.placement;
    std::int64_t ranges = 0;
    for (std::size_t r = 0; r < placement.offset.size(); ++r) {
      if (placement.pages_of[r].size() > 1) ++ranges;
    }
    return ranges;
  }

 private:
  [[nodiscard]] std::int64_t planned() const {
    return std::count_if(sequence_.period.begin(), sequence_.period.end(), [&](const auto& step) {
      return !step.free && layout_.live.of_slot[static_cast<std::size_t>(step.slot)] >= 0;
    });
  }
  bool draw(std::uint64_t one_of) { return random_() % one_of == 0; }

  void allocate(AllocationSequence::Slot slot, bool as_planned) {
    const Bytes bytes = sequence_.bytes[static_cast<std::size_t>(slot)];
    const bool is_placed = layout_.live.of_slot[static_cast<std::size_t>(slot)] >= 0;
    if (is_placed && slot < storages_ && next_of_first_ < layout_.first_hand_outs.size()) {
      const HandOut& own = layout_.first_hand_outs[next_of_first_++];
      ASSERT_EQ(own.range, layout_.live.of_slot[static_cast<std::size_t>(slot)]);
      if (std::exchange(is_made_, false)) return;
    }
    if (bytes <= 0 || (!as_planned && draw(20))) return;
    given_[static_cast<std::size_t>(slot)] =
        take(bytes, slot < storages_ ? kNoStay : slot - storages_);
  }
  // What only a first period makes, up to that event: it stays, or is not the region's.
  void make_extras(EventId until) {
    const std::vector<HandOut>& all = layout_.first_hand_outs;
    for (; next_of_first_ < all.size(); ++next_of_first_) {
      const HandOut& each = all[next_of_first_];
      const bool lasts = std::find(layout_.lasting.begin(), layout_.lasting.end(), each.range) !=
                         layout_.lasting.end();
      if ((each.range >= 0 && !lasts) || each.event > until) return;
      is_made_ = each.is_for_next;
      for_next_ += is_made_ ? 1 : 0;
      if (each.range < 0) {
        ASSERT_EQ(server_.allocate(each.bytes), -1);
      } else {
        ASSERT_GE(take(each.bytes), 0);
        ++extras_;
      }
    }
  }
  void besides() {
    const auto& all = layout_.live.ranges;
    const Bytes bytes = all.empty() || draw(2) ? 12345 : all[random_() % all.size()].bytes;
    if (const std::int32_t range = take(bytes); range >= 0) kept_.push_back(range);
  }
  std::int32_t take(Bytes bytes, std::int32_t stay = kNoStay) {
    ++asked_;
    const std::int32_t range = server_.allocate(bytes, stay);
    if (range < 0) return range;
    EXPECT_EQ(layout_.bytes(range), bytes);
    memory_.take(range);
    return range;
  }
  void free(AllocationSequence::Slot slot, bool as_planned) {
    std::int32_t& range = given_[static_cast<std::size_t>(slot)];
    if (range >= 0 && !as_planned && draw(10)) {
      kept_.push_back(range);
    } else if (range >= 0) {
      give_back(range);
    }
    range = -1;
  }
  void give_back(std::int32_t range) {
    server_.free(range);
    memory_.give_back(range);
  }

  AllocationSequence::Slot storages_;
  AllocationSequence sequence_;
  MemoryLayout layout_;
  HandOutServer server_;
  Memory memory_;
  std::mt19937_64 random_;
  std::vector<std::int32_t> given_;  // by slot
  std::vector<std::int32_t> kept_;
  bool is_first_ = true;
  std::size_t next_of_first_ = 0;  // of the layout's first hand-outs
  bool is_made_ = false;           // the next one is what the one ahead of it was
  std::int64_t asked_ = 0;
  std::int64_t extras_ = 0;
  std::int64_t for_next_ = 0;
};

// Tensors that share a page and tensors of many pages, with and without memory that was there
// before.
TEST(HandOuts, OfRandomPlansNeverHaveTwoOwners) {
  constexpr std::uint64_t kCases = 1000;
  std::int64_t conflicts = 0;
  std::int64_t unforeseen = 0;
  std::int64_t served = 0;
  std::int64_t with_pages = 0;
  std::int64_t extras = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    const Trace trace = stowage::testing::random_trace(
        seed, {.ops = static_cast<int>(4 + seed % 20), .setup = seed % 3 == 0, .unit = 64});
    const StepIndex index(trace);
    Decisions decisions;
    decisions.saved.resize(trace.saved.size());
    std::mt19937_64 random(seed);
    for (SavedDecision& each : decisions.saved) {
      if (random() % 2 == 0) each.decision = Decision::offload;
    }
    const auto lowered = lower(index, decisions);
    ASSERT_TRUE(lowered.ok());
    RandomPeriods periods(index, lowered->schedule, seed);
    for (int period = 0; period < 2; ++period) periods.run(true);
    ASSERT_EQ(periods.report().served, periods.planned_of_two()) << "seed " << seed;
    ASSERT_EQ(periods.report().served, periods.asked());
    for (int period = 0; period < 3; ++period) periods.run(false);
    const HandOutReport& report = periods.report();
    ASSERT_EQ(report.served + report.conflicts + report.unforeseen, periods.asked());
    conflicts += report.conflicts;
    unforeseen += report.unforeseen;
    served += report.served;
    with_pages += periods.of_several_pages();
    extras += periods.extras();
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
  }
  std::cout << "seeds 1 to " << kCases << ": " << served << " served, " << conflicts
            << " conflicts, " << unforeseen << " unforeseen, " << with_pages
            << " ranges of several pages, " << extras << " of a first period alone\n";
  EXPECT_GT(conflicts, 100);
  EXPECT_GT(unforeseen, 100);
  EXPECT_GT(with_pages, 1000);
  EXPECT_GT(extras, 100);
}

}  // namespace
}  // namespace stowage::simulator
