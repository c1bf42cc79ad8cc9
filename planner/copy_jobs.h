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

// Jobs of one lane, worked off for any number of bytes.
class CopyJobs {
 public:
  // Cost: O(jobs log jobs).
  explicit CopyJobs(std::vector<CopyJob> jobs);

  // The earliest time by which the lane can have processed jobs worth `wanted`; a huge one if they
  // are worth less. Preempted, densest first: at each moment the densest jobs have had as much of
  // the lane as they can, which is best for every horizon at once. Rounds down. Cost: O(log jobs).
  [[nodiscard]] Nanoseconds earliest_done(Bytes wanted) const;

  // The least time that the link moves bytes for jobs worth `wanted`, whenever they are done: a
  // fractional knapsack. All of it if they are worth less. Rounds down. Cost: O(log jobs).
  [[nodiscard]] Nanoseconds least_moving(Bytes wanted) const;

 private:
  // From `start` on, with `before` bytes done, the lane works on a job that is worth `value` in
  // `size` until `gained` are done.
  struct Work {
    Nanoseconds start = 0;
    Bytes before = 0;
    Bytes gained = 0;
    Nanoseconds size = 0;
    Bytes value = 0;
    [[nodiscard]] Bytes done() const { return before + gained; }
  };
  void work_off(std::vector<CopyJob>& jobs);

  std::vector<Work> work_;      // in order of time
  std::vector<Work> knapsack_;  // `start`: moved by then; densest first
};

}  // namespace stowage::planner
