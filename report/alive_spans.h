// Every stretch of a step in which some bytes lie on device 0: a storage, a copy of an offloaded
// one that is back, one stay of streamed model state. The one statement of what is alive when, for
// the recorded step and for a planned one; the sum at each place is that of
// simulator::replay_memory().
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

enum class Holding : std::uint8_t {
  original,  // the storage itself
  reloaded,  // a copy of an offloaded one that is back on the device
  host,      // a slot in the host arena
};
[[nodiscard]] const char* name_of(Holding value);

// Positions order events and instructions: an instruction stands behind its event, ahead of the
// next one, instructions of one event in their order. There are fewer than 2^31 of them.
using StepPosition = std::int32_t;
inline constexpr StepPosition kNever = std::numeric_limits<StepPosition>::max();
inline constexpr StepPosition kBefore = -1;

struct AliveSpan {
  Holding holding = Holding::original;
  StorageId storage;
  SavedId saved;  // of a reloaded copy: the first that it serves
  Bytes bytes = 0;
  StepPosition begin = kBefore;
  StepPosition end = kNever;  // the first position at which it is gone
};

// A value: it refers to neither trace nor schedule. Cost to build: O(S log S + events +
// instructions) for S spans. It holds 36 to 40 bytes a span, and with instructions 4 bytes an
// event and up to 4 an instruction; sums are made, looked through and let go.
class AliveSpans {
 public:
  // An empty schedule, as is the default, gives the recorded step.
  explicit AliveSpans(const Trace& trace, const simulator::Schedule& schedule = {});

  // In order of begin; spans of no bytes are left out.
  [[nodiscard]] const std::vector<AliveSpan>& all() const { return spans_; }

  // The event's own position, and that of its last instruction.
  [[nodiscard]] StepPosition at_event(std::size_t event) const {
    return static_cast<StepPosition>(event) + ahead(event);
  }
  [[nodiscard]] StepPosition last_at(std::size_t event) const {
    return static_cast<StepPosition>(event) + ahead(event + 1);
  }
  // The event at which, or behind whose action, a position is. O(log events).
  [[nodiscard]] EventId event_of(StepPosition position) const;

  // The first position with the most bytes: of the step, of one event and its instructions (O(log
  // instructions)). Precondition: there are events.
  [[nodiscard]] StepPosition highest() const { return highest_; }
  [[nodiscard]] StepPosition highest_at(EventId event) const;

  // Rows of all() that are there at a position, in order of begin. O((k + 1) log S) for k of them:
  // a tree of the latest ends over spans in order of begin.
  [[nodiscard]] std::vector<std::size_t> alive(StepPosition position) const;

 private:
  void add_storages(const Trace& trace, const simulator::Schedule& schedule);
  void add_buffers(const Trace& trace, const simulator::Schedule& schedule);
  void find_highest(std::size_t positions);
  void plant_tree();
  [[nodiscard]] StepPosition latest_end(std::size_t node) const;
  [[nodiscard]] StepPosition behind_event(EventId event) const;

  [[nodiscard]] StepPosition ahead(std::size_t event) const {
    return ahead_.empty() ? 0 : ahead_[event];
  }

  std::size_t events_ = 0;
  std::vector<std::uint32_t> ahead_;  // instructions ahead of each event; empty: there are none
  std::vector<AliveSpan> spans_;
  StepPosition highest_ = 0;
  std::vector<StepPosition>
      highest_amid_;  // of the events whose highest position is an instruction's
  std::vector<StepPosition> latest_end_;  // by inner node, children of n at 2n and 2n + 1
  std::size_t leaves_ = 1;                // spans, from node `leaves_` on, and none behind them
};

}  // namespace stowage::report
