// The happens-before relation of a schedule: three streams and vector clocks over them (Fidge,
// Mattern). Access a is ordered ahead of b when b's clock has seen a's number on a's stream.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "traces/ids.h"

namespace stowage::simulator {

// What crosses the step's end is seen in the second of two periods.
inline constexpr std::size_t kPeriods = 2;

enum Stream : std::uint8_t { compute, d2h, h2d };
using Clock = std::array<std::int64_t, 3>;

inline void join(Clock& into, const Clock& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

struct Access {
  Stream stream = compute;
  Clock clock{};  // its own number included
  EventId event;
  bool happened = false;
};

[[nodiscard]] inline bool ordered(const Access& first, const Access& second) {
  return second.clock[first.stream] >= first.clock[first.stream];
}

class Streams {
 public:
  // An access on the compute stream, now.
  Access on_compute(EventId event) {
    ++now_[compute];
    return {compute, now_, event, true};
  }

  // A copy that may start now: ordered behind compute so far and the lane's earlier copies.
  Access on_lane(Stream lane, EventId event) {
    Clock& last = lane_clock_[lane - 1];
    join(last, now_);
    ++last[lane];
    return {lane, last, event, true};
  }

  // Compute waits for a copy, if there was one.
  void wait_for(const Access& copied) {
    if (copied.happened) join(now_, copied.clock);
  }

 private:
  Clock now_{};                        // what compute has seen
  std::array<Clock, 2> lane_clock_{};  // of the last copy on each lane
};

}  // namespace stowage::simulator
