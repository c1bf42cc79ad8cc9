#include "planner/copy_jobs.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>

namespace stowage::planner {
namespace {

struct LessDense {
  bool operator()(const CopyJob& a, const CopyJob& b) const {
    const Wide left = static_cast<Wide>(a.value) * b.size;
    const Wide right = static_cast<Wide>(b.value) * a.size;
    return left != right ? left < right : a.release > b.release;
  }
};

}  // namespace

Nanoseconds earliest_done(std::vector<CopyJob>& jobs, Bytes wanted) {
  std::sort(jobs.begin(), jobs.end(),
            [](const CopyJob& a, const CopyJob& b) { return a.release < b.release; });
  std::priority_queue<CopyJob, std::vector<CopyJob>, LessDense> ready;
  Nanoseconds now = 0;
  std::size_t next = 0;
  while (wanted > 0) {
    if (ready.empty()) {
      if (next == jobs.size()) return std::numeric_limits<Nanoseconds>::max() / 4;
      now = std::max(now, jobs[next].release);
    }
    while (next < jobs.size() && jobs[next].release <= now) {
      if (jobs[next].size == 0) {
        wanted -= jobs[next].value;
      } else {
        ready.push(jobs[next]);
      }
      ++next;
    }
    if (wanted <= 0) break;
    if (ready.empty()) continue;
    CopyJob job = ready.top();
    ready.pop();
    const Nanoseconds until =
        next < jobs.size() ? std::min(job.size, jobs[next].release - now) : job.size;
    // Value gained rounds up, so that the time is never too late.
    const auto gained =
        static_cast<Bytes>((static_cast<Wide>(job.value) * until + job.size - 1) / job.size);
    if (gained >= wanted) {
      return now + static_cast<Nanoseconds>(static_cast<Wide>(wanted) * job.size / job.value);
    }
    wanted -= gained;
    now += until;
    if (until < job.size) {
      job.size -= until;
      job.value = std::max<Bytes>(job.value - gained, 0);
      ready.push(job);
    }
  }
  return now;
}

Nanoseconds least_moving(std::vector<CopyJob>& jobs, Bytes wanted) {
  std::sort(jobs.begin(), jobs.end(), [](const CopyJob& a, const CopyJob& b) {
    return static_cast<Wide>(a.value) * b.moving > static_cast<Wide>(b.value) * a.moving;
  });
  Nanoseconds moving = 0;
  for (const CopyJob& job : jobs) {
    if (wanted <= 0) break;
    if (job.value >= wanted) {
      return moving + static_cast<Nanoseconds>(static_cast<Wide>(wanted) * job.moving / job.value);
    }
    wanted -= job.value;
    moving += job.moving;
  }
  return moving;
}

}  // namespace stowage::planner
