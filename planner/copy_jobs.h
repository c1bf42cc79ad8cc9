// Copies as jobs that a lane works off for the bytes that they free: two relaxations in which any
// fraction of a job frees that fraction of its bytes, so that what they give is never too much.
#pragma once

#include <vector>

#include "traces/units.h"

namespace stowage::planner {

// A copy that frees `value` bytes when it is done, not begun before `release`. It takes `size` ns
// of its lane, `moving` of them with bytes on the link (the others are its latency).
struct CopyJob {
  Nanoseconds release = 0;
  Nanoseconds size = 0;
  Nanoseconds moving = 0;
  Bytes value = 0;
};

// The earliest time by which one lane can have processed jobs worth `wanted`; a huge one if they
// are worth less. Preempted, densest first: at each moment the densest jobs have had as much of
// the lane as they can, which is best for every horizon at once. Rounds down. Reorders `jobs`.
// Cost: O(jobs log jobs).
[[nodiscard]] Nanoseconds earliest_done(std::vector<CopyJob>& jobs, Bytes wanted);

// The least time that the link moves bytes for jobs worth `wanted`, whenever they are done: a
// fractional knapsack. All of it if they are worth less. Rounds down. Reorders `jobs`. Cost:
// O(jobs log jobs).
[[nodiscard]] Nanoseconds least_moving(std::vector<CopyJob>& jobs, Bytes wanted);

}  // namespace stowage::planner
