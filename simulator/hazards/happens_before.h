// The happens-before relation of a schedule: a list of streams and vector clocks over them (Fidge,
// Mattern). Access a is ordered ahead of b when b's clock has seen a's number on a's stream.
// Stream 0 issues: it is compute, in program order; work on every other stream is ordered behind
// what compute has done when it is issued, and compute waits for it by name.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "traces/ids.h"

namespace stowage::simulator {

// What crosses the step's end is seen in the second of two periods.
inline constexpr std::size_t kPeriods = 2;

// The streams of an executor; `host` is the thread that updates parameters there. A further one is
// a further entry; nothing below knows how many there are.
enum Stream : std::uint8_t { compute, d2h, h2d, host };
inline constexpr std::size_t kMostStreams = 4;

using VectorClock = std::array<std::int64_t, kMostStreams>;

inline void join(VectorClock& into, const VectorClock& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

struct Access {
  std::uint8_t stream = compute;
  VectorClock clock{};  // its own number included
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
    ++now()[compute];
    return {compute, now(), event, true};
  }

  // Work that may start now: ordered behind compute so far and the stream's earlier work.
  Access on_stream(std::uint8_t stream, EventId event) {
    VectorClock& last = clock_[stream];
    join(last, now());
    ++last[stream];
    return {stream, last, event, true};
  }

  // Work of a stream that waits for `first` and for its own earlier work, and for nothing else.
  Access on_stream_behind(std::uint8_t stream, const Access& first, EventId event) {
    VectorClock& last = clock_[stream];
    join(last, first.clock);
    ++last[stream];
    return {stream, last, event, true};
  }

  // Compute waits for work, if there was any.
  void wait_for(const Access& access) {
    if (access.happened) join(now(), access.clock);
  }

 private:
  VectorClock& now() { return clock_[compute]; }  // what compute has seen

  std::array<VectorClock, kMostStreams> clock_{};  // of the last work on each stream
};

}  // namespace stowage::simulator
