// HandOutServer: which range each allocation of a running step gets. One of the step's own is
// served when it is the next one of the layout by order and size (in its second place, where it has
// one and what the period before made is still there); a buffer of a load by its stay; what
// is to stay, by its size. None unless nobody has any of its bytes; everything else is for the
// device's own allocator, and is counted and named here. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/placement/memory_layout.h"
#include "simulator/placement/page_owners.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::simulator {

// What was not as planned, since the server was made.
struct HandOutReport {
  // A range was not handed out because `owner` (which may be the range itself, of a period before)
  // still has some of its bytes.
  struct Conflict {
    EventId event;  // of the hand-out; invalid: a buffer's
    std::int32_t range = 0;
    std::int32_t owner = 0;
    EventId owner_event;  // of that one's; invalid: it is no hand-out of the period
    std::int64_t times = 1;
  };
  // An allocation that the layout does not have here.
  struct Unforeseen {
    EventId ahead_of;  // the next hand-out; invalid: behind the last one
    Bytes bytes = 0;
    // That made the first of them, as name_unforeseen() was told; empty: not known.
    std::string op;
    std::int64_t times = 1;
  };
  static constexpr std::size_t kMostNamed = 100;  // of each, however often they come

  std::int64_t served = 0;  // in periods, as what follows
  std::int64_t conflicts = 0;
  std::int64_t unforeseen = 0;
  std::vector<Conflict> first_conflicts;
  std::vector<Unforeseen> first_unforeseen;
};

inline constexpr std::int32_t kNoStay = -1;

class HandOutServer {
 public:
  // The layout outlives it. Cost: O(mapped pages + hand-outs of a first period).
  explicit HandOutServer(const MemoryLayout& layout);

  // Between the two, allocations are those of a period, from its begin on. A step that leaves its
  // plan ends it. Periods are first ones until one has come past all that only a first one makes.
  void begin_period();
  void end_period();
  [[nodiscard]] bool in_period() const { return in_period_; }
  // Between the two, outside of any period: what is allocated is to last, if it has the size of
  // something that does.
  void begin_setup() { in_setup_ = true; }
  void end_setup() { in_setup_ = false; }
  [[nodiscard]] bool in_setup() const { return in_setup_; }
  // The period has come to this event: what comes next is at it or behind. Events never go back.
  // So one allocation more or less than planned is forgotten at the next event that anybody hears
  // of. Cost: amortised O(1).
  void reach(EventId event);

  // The range, or -1 for the device's own allocator. `stay`: whose buffer it is, kNoStay = the
  // step's own. Where the next hand-out has another size, one of the following few that has this
  // size is it, else a range of that size for what lasts that nobody has. Cost: that of
  // PageOwners::take().
  [[nodiscard]] std::int32_t allocate(Bytes bytes, std::int32_t stay = kNoStay);
  // A range for what is there all the time, in a period or outside of any; -1 = none of that size
  // is left.
  [[nodiscard]] std::int32_t take_lasting(Bytes bytes);
  // Of what the report names among what was not foreseen, that one is of this op.
  void name_unforeseen(std::size_t which, std::string op);
  // Of what the two gave, within a period or outside.
  void free(std::int32_t range);

  [[nodiscard]] bool is_live(std::int32_t range) const { return owners_.has(range); }
  // It is for what is there all the time.
  [[nodiscard]] bool lasts(std::int32_t range) const {
    return lasts_[static_cast<std::size_t>(range)];
  }
  // How many ranges are handed out.
  [[nodiscard]] std::int32_t live() const { return owners_.count(); }
  [[nodiscard]] const HandOutReport& report() const { return report_; }

 private:
  [[nodiscard]] const std::vector<HandOut>& hand_outs() const {
    return is_first_ ? layout_.first_hand_outs : layout_.hand_outs;
  }
  // And none of those that only a first one makes.
  [[nodiscard]] bool is_of_every_period(const HandOut& each) const;
  // It is of what lasts, all of that size is there, and so nobody asks for it.
  [[nodiscard]] bool is_there(const HandOut& each) const;
  // The hand-out that an allocation of that size is; their number: none. Cost: O(1), in a first
  // period O(what only that makes next).
  [[nodiscard]] std::size_t find(Bytes bytes) const;
  // The range, if nobody has any of it.
  [[nodiscard]] std::int32_t take(std::int32_t range, EventId event);
  std::int32_t unforeseen(Bytes bytes);

  const MemoryLayout& layout_;
  PageOwners owners_;
  HandOutReport report_;
  bool in_period_ = false;
  bool in_setup_ = false;
  bool is_first_ = false;
  std::size_t first_ends_ = 0;  // of the first hand-outs: behind the last that only they have
  std::size_t next_ = 0;        // hand-out
  std::size_t reached_ = 0;     // the first hand-out at the last reach() or behind
  std::vector<bool> lasts_;     // by range
  // What lasts and was gone past since the last reach(), by size: a first period may make it behind
  // an allocation that the list has behind it.
  std::vector<Bytes> passed_;
  std::unordered_map<Bytes, std::vector<std::int32_t>> lasting_;  // that nobody has, by size
};

}  // namespace stowage::simulator
