#include "planner/host_update_bound.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "simulator/machine/host_lane.h"
#include "simulator/machine/link_model.h"

namespace stowage::planner {
namespace {

struct Job {
  Nanoseconds release = 0;  // of its gradient
  Nanoseconds out = 0;
  Nanoseconds update = 0;
  [[nodiscard]] Nanoseconds arrival() const { return release + out; }
};

Nanoseconds scaled(Nanoseconds time, Ppm factor) {
  return static_cast<Nanoseconds>(Wide{time} * factor / kPpm);
}

// Of one copy: with bytes on the link.
Nanoseconds moving(const LinkCurve& curve, Nanoseconds copy) {
  return copy - std::min(copy, curve.latency);
}

// The latest of: some job's time, and then the length of all that are no earlier.
template <class TimeOf, class LengthOf>
Nanoseconds latest_end(std::vector<Job> jobs, const TimeOf& time, const LengthOf& length) {
  std::sort(jobs.begin(), jobs.end(),
            [&](const Job& a, const Job& b) { return time(a) > time(b); });
  Nanoseconds behind = 0;
  Nanoseconds end = 0;
  for (const Job& job : jobs) {
    behind += length(job);
    end = std::max(end, time(job) + behind);
  }
  return end;
}

}  // namespace

Nanoseconds shortest_with_host_updates(const simulator::StepIndex& index, Ppm compute_time) {
  const std::vector<StorageId>& updated = index.step().host_updates();
  if (updated.empty()) return 0;
  const Trace& trace = index.trace();
  const Storages& storages = trace.storages;
  const Calibration& link = trace.calibration;
  struct Update {
    Bytes all = 0;
    Bytes parameter = 0;
    StorageId gradient;
  };
  std::map<StorageId, Update> by_parameter;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId owner = storages.parameter[s].valid() ? storages.parameter[s] : StorageId(s);
    if (storages.storage_class[owner.index()] != StorageClass::parameter) continue;
    const StorageId recorded = index.step().origin(owner).row;
    if (std::find(updated.begin(), updated.end(), recorded) == updated.end()) continue;
    Update& of = by_parameter[owner];
    const bool is_gradient = storages.storage_class[s] == StorageClass::gradient;
    if (is_gradient && !storages.alloc_event[s].valid()) continue;  // of the step before
    of.all += storages.bytes[s];
    if (is_gradient) of.gradient = StorageId(s);
    if (owner == StorageId(s)) of.parameter = storages.bytes[s];
  }
  std::vector<Job> jobs;
  Nanoseconds out = 0;
  Nanoseconds back = 0;
  Nanoseconds all_back = 0;
  Nanoseconds least_update = std::numeric_limits<Nanoseconds>::max();
  for (const auto& [parameter, bytes] : by_parameter) {
    const auto& touches = index.model_state_uses().touches_of(bytes.gradient);
    const std::size_t there = touches.empty() ? storages.alloc_event[bytes.gradient.index()].index()
                                              : touches.back().begin.index();
    Job& job = jobs.emplace_back();
    job.release = scaled(index.resident_time()[there], compute_time);
    job.out = simulator::transfer_ns(link.d2h, storages.bytes[bytes.gradient.index()]);
    job.update = simulator::host_update_ns(link, bytes.all);
    out += moving(link.d2h, job.out);
    const Nanoseconds load = simulator::transfer_ns(link.h2d, bytes.parameter);
    back += moving(link.h2d, load);
    all_back += load;
    least_update = std::min(least_update, job.update);
  }
  const Ppm speed = std::clamp<Ppm>(link.compute_interference, kPpm / 1000, kPpm);
  const Nanoseconds compute = scaled(index.compute_until().back(), compute_time) +
                              scaled(std::max(out, back), kPpm - speed);
  const Nanoseconds copies = latest_end(
      jobs, [](const Job& job) { return job.release; }, [](const Job& job) { return job.out; });
  const Nanoseconds updates = latest_end(
      jobs, [](const Job& job) { return job.arrival(); },
      [](const Job& job) { return job.update; });
  return std::max({compute, all_back, copies + least_update, updates});
}

}  // namespace stowage::planner
