// HostUse: how many bytes a plan has on the host over a step.
#pragma once

#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "traces/units.h"

namespace stowage::report {

struct HostUse {
  // From `time` on, until the next point; times grow.
  struct Point {
    Nanoseconds time = 0;
    Bytes bytes = 0;
    bool operator==(const Point&) const = default;
  };
  std::vector<Point> points;  // the first one is at 0
  Bytes most = 0;             // of all points; at most Schedule::host_bytes

  // The most there is at any time of [begin, end). O(log points + points in between).
  [[nodiscard]] Bytes most_in(Nanoseconds begin, Nanoseconds end) const;
};

// What has a home of its own is there all the time; all else from the begin of its first copy out
// to the end of its last copy. O(copies log copies).
[[nodiscard]] HostUse host_use(const simulator::Schedule& schedule,
                               const simulator::ReplayDetail& detail);

}  // namespace stowage::report
