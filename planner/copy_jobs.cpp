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

CopyJobs::CopyJobs(std::vector<CopyJob> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const CopyJob& a, const CopyJob& b) {
    return static_cast<Wide>(a.value) * b.moving > static_cast<Wide>(b.value) * a.moving;
  });
  Work moved;
  for (const CopyJob& job : jobs) {
    moved = {moved.start + moved.size, moved.done(), job.value, job.moving, job.value};
    knapsack_.push_back(moved);
  }
  work_off(jobs);
}

void CopyJobs::work_off(std::vector<CopyJob>& jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const CopyJob& a, const CopyJob& b) { return a.release < b.release; });
  std::priority_queue<CopyJob, std::vector<CopyJob>, LessDense> ready;
  Nanoseconds now = 0;
  Bytes done = 0;
  for (std::size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, jobs[next].release);
    while (next < jobs.size() && jobs[next].release <= now) {
      if (jobs[next].size == 0) {
        done += jobs[next].value;
        work_.push_back({now, done, 0, 0, 0});
      } else {
        ready.push(jobs[next]);
      }
      ++next;
    }
    if (ready.empty()) continue;
    CopyJob job = ready.top();
    ready.pop();
    const Nanoseconds until =
        next < jobs.size() ? std::min(job.size, jobs[next].release - now) : job.size;
    // Value gained rounds up, so that the time is never too late.
    const auto gained =
        static_cast<Bytes>((static_cast<Wide>(job.value) * until + job.size - 1) / job.size);
    work_.push_back({now, done, gained, job.size, job.value});
    done += gained;
    now += until;
    if (until < job.size) {
      job.size -= until;
      job.value = std::max<Bytes>(job.value - gained, 0);
      ready.push(job);
    }
  }
}

Nanoseconds CopyJobs::earliest_done(Bytes wanted) const {
  if (wanted <= 0) return 0;
  const auto at = std::partition_point(work_.begin(), work_.end(),
                                       [&](const Work& work) { return work.done() < wanted; });
  if (at == work_.end()) return std::numeric_limits<Nanoseconds>::max() / 4;
  if (at->before >= wanted) return at->start;
  return at->start +
         static_cast<Nanoseconds>(static_cast<Wide>(wanted - at->before) * at->size / at->value);
}

Nanoseconds CopyJobs::least_moving(Bytes wanted) const {
  if (wanted <= 0 || knapsack_.empty()) return 0;
  const auto at = std::partition_point(knapsack_.begin(), knapsack_.end(),
                                       [&](const Work& work) { return work.done() < wanted; });
  if (at == knapsack_.end()) return knapsack_.back().start + knapsack_.back().size;
  return at->start +
         static_cast<Nanoseconds>(static_cast<Wide>(wanted - at->before) * at->size / at->value);
}

}  // namespace stowage::planner
