// HandOutServer: which range each allocation of a running step gets. An allocation is served when
// it is the next one of the layout by order and size and nobody has any of its bytes; everything
// else is for the caching allocator, and is counted and named here. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
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
    EventId event;  // of the hand-out
    std::int32_t range = 0;
    std::int32_t owner = 0;
    EventId owner_event;  // of that one's
  };
  // An allocation that the layout does not have here.
  struct Unforeseen {
    EventId ahead_of;  // the next hand-out; invalid: behind the last one
    Bytes bytes = 0;
  };
  static constexpr std::size_t kMostNamed = 100;  // of each

  std::int64_t served = 0;
  std::int64_t conflicts = 0;
  std::int64_t unforeseen = 0;
  std::vector<Conflict> first_conflicts;
  std::vector<Unforeseen> first_unforeseen;
};

class HandOutServer {
 public:
  // The layout outlives it.
  explicit HandOutServer(const MemoryLayout& layout);

  // Between the two, allocations are those of a period, from its begin on. A step that leaves its
  // plan ends it.
  void begin_period();
  void end_period() { in_period_ = false; }
  // The period has come to this event: what comes next is at it or behind. Events never go back.
  // So one allocation more or less than planned is forgotten at the next event that anybody hears
  // of. Cost: amortised O(1).
  void reach(EventId event);

  // The range, or -1 for the caching allocator. Where the next hand-out has another size, one of
  // the following few that has this size is it. Cost: that of PageOwners::take().
  [[nodiscard]] std::int32_t allocate(Bytes bytes);
  // Of what allocate() gave, within a period or outside.
  void free(std::int32_t range) { owners_.give_back(range); }

  // How many ranges are handed out.
  [[nodiscard]] std::int32_t live() const { return owners_.count(); }
  [[nodiscard]] const HandOutReport& report() const { return report_; }

 private:
  // The hand-out that an allocation of that size is; their number: none.
  [[nodiscard]] std::size_t find(Bytes bytes) const;

  const MemoryLayout& layout_;
  PageOwners owners_;
  HandOutReport report_;
  bool in_period_ = false;
  std::size_t next_ = 0;     // hand-out
  std::size_t reached_ = 0;  // the first hand-out at the last reach() or behind
};

}  // namespace stowage::simulator
