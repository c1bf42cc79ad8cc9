#include "profiler/assembly/device_times.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "profiler/assembly/join.h"
#include "profiler/assembly/work_clock.h"

namespace stowage::profiler {

namespace {

constexpr Nanoseconds kQueueWait = 20'000;
constexpr Nanoseconds kQueueWaitMedians = 8;
constexpr Nanoseconds kLaunchedAhead = 3'000;
constexpr Nanoseconds kLargestInherentGap = 5'000;

std::vector<RawSpan> queue_waits(const TimingPass& timing, const Attribution& attribution) {
  std::vector<Nanoseconds> durations;
  const auto launch_of = [&](const AttributedActivity& each) -> const RawLaunch& {
    return timing.activities.launches[each.launch];
  };
  const auto is_kernel = [&](const AttributedActivity& each) {
    return timing.activities.activities[each.activity].kind == GpuKind::kernel;
  };
  for (const AttributedActivity& each : attribution.activities) {
    if (is_kernel(each)) durations.push_back(launch_of(each).end_ns - launch_of(each).start_ns);
  }
  std::vector<RawSpan> waits;
  if (durations.empty()) return waits;
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  const Nanoseconds limit = std::max(kQueueWait, kQueueWaitMedians * *middle);
  for (const AttributedActivity& each : attribution.activities) {
    const RawLaunch& launch = launch_of(each);
    if (!is_kernel(each) || launch.end_ns - launch.start_ns <= limit) continue;
    waits.push_back({launch.start_ns + *middle, launch.end_ns});
  }
  return waits;
}

class Builder {
 public:
  Builder(const RawPass& structure, const TimingPass& timing, Attribution attribution,
          const std::vector<std::int32_t>& row_in_timing)
      : structure_(structure), timing_(timing), work_(left_out(timing, attribution)) {
    result_.attribution = std::move(attribution);
    map_events(row_in_timing);
  }

  DeviceTimes run(Nanoseconds clean_step_ns) {
    add_launch_work();
    add_device_work();
    add_syncs();
    result_.scales = fit_scales(result_.clocks, clean_step_ns);
    put_on_scale();
    return std::move(result_);
  }

 private:
  static std::vector<RawSpan> left_out(const TimingPass& timing, const Attribution& attribution) {
    std::vector<RawSpan> spans = queue_waits(timing, attribution);
    spans.insert(spans.end(), timing.pass.hook_spans.begin(), timing.pass.hook_spans.end());
    spans.insert(spans.end(), attribution.own_waits.begin(), attribution.own_waits.end());
    for (const AttributedSync& sync : attribution.syncs) {
      spans.push_back({sync.start_ns, sync.end_ns});
    }
    return spans;
  }

  // What has no counterpart stands right behind the event before it, in both directions.
  void map_events(const std::vector<std::int32_t>& row_in_timing) {
    const std::size_t n = structure_.events.size();
    times_.resize(n);
    in_structure_.assign(timing_.pass.events.size(), -1);
    for (std::size_t e = 0; e < n; ++e) {
      if (row_in_timing[e] < 0) {
        times_[e] = times_[e - 1];  // the first event is common
        continue;
      }
      const auto row = static_cast<std::size_t>(row_in_timing[e]);
      times_[e] = timing_.pass.events[row].time_ns;
      in_structure_[row] = static_cast<std::int32_t>(e);
    }
    for (std::size_t e = 1; e < n; ++e) times_[e] = std::max(times_[e], times_[e - 1]);
    for (std::size_t row = 1; row < in_structure_.size(); ++row) {
      if (in_structure_[row] < 0) in_structure_[row] = in_structure_[row - 1];
    }
  }

  std::int32_t event_of(std::int32_t timing_event) const {
    return in_structure_[static_cast<std::size_t>(timing_event)];
  }

  void add_launch_work() {
    const std::size_t n = structure_.events.size();
    result_.clocks.launch.assign(n, 0);
    result_.clocks.compute.assign(n, 0);
    result_.clocks.sync.assign(n, 0);
    for (std::size_t e = 1; e < n; ++e) {
      result_.clocks.launch[e] = work_.at(times_[e]) - work_.at(times_[e - 1]);
    }
  }

  // The row of the gap behind that event.
  std::size_t gap_behind(std::int32_t event) const {
    return std::min(static_cast<std::size_t>(event) + 1, structure_.events.size() - 1);
  }

  void add_device_work() {
    std::int64_t end = 0;
    for (const AttributedActivity& each : result_.attribution.activities) {
      const RawActivity& activity = timing_.activities.activities[each.activity];
      const RawLaunch& launch = timing_.activities.launches[each.launch];
      Nanoseconds work = std::max<Nanoseconds>(0, activity.end_ns - std::max(each.start_ns, end));
      if (each.start_ns > end && launch.end_ns + kLaunchedAhead <= end) {
        work += std::min(each.start_ns - end, kLargestInherentGap);
      }
      end = std::max(end, activity.end_ns);
      DeviceActivity row;
      row.activity = each.activity;
      row.op = each.op;
      row.event = event_of(each.event);
      row.stream = activity.stream;
      row.duration = work;
      row.launch_start = work_.at(launch.start_ns) - work_.at(times_.front());
      row.launch_duration = work_.at(launch.end_ns) - work_.at(launch.start_ns);
      result_.clocks.compute[gap_behind(row.event)] += work;
      result_.activities.push_back(row);
    }
  }

  void add_syncs() {
    for (const AttributedSync& sync : result_.attribution.syncs) {
      const std::int32_t event = event_of(sync.event);
      result_.syncs.push_back({event, 0});
      result_.clocks.sync[gap_behind(event)] = 1;
    }
  }

  static Nanoseconds scaled(Nanoseconds time, double factor) {
    return static_cast<Nanoseconds>(std::floor(static_cast<double>(time) * factor));
  }

  // Both clocks through the step, in order of events, as the simulator has them. Rounded on the
  // running sums, so that the whole is exact.
  void put_on_scale() {
    Nanoseconds work = 0;     // of the launch thread, as measured
    Nanoseconds compute = 0;  // of the device, as measured
    Nanoseconds waited = 0;   // by the launch thread, on the scale
    Nanoseconds end = 0;      // of the device's work so far, on the scale
    std::size_t next = 0;     // activity
    std::size_t next_sync = 0;
    for (std::size_t e = 0; e < result_.clocks.launch.size(); ++e) {
      work += result_.clocks.launch[e];
      Nanoseconds reached = scaled(work, result_.scales.launch) + waited;
      for (; next < result_.activities.size() && gap_behind(result_.activities[next].event) == e;
           ++next) {
        DeviceActivity& row = result_.activities[next];
        const Nanoseconds before = scaled(compute, result_.scales.compute);
        compute += row.duration;
        row.duration = scaled(compute, result_.scales.compute) - before;
        row.start = std::max(end, reached);
        end = row.start + row.duration;
        row.launch_start = scaled(row.launch_start, result_.scales.launch) + waited;
        row.launch_duration = scaled(row.launch_duration, result_.scales.launch);
      }
      if (result_.clocks.sync[e] != 0) {
        const Nanoseconds wait = std::max<Nanoseconds>(0, end - reached);
        reached += wait;
        waited += wait;
        // Several waits in one gap are one wait.
        for (bool first = true;
             next_sync < result_.syncs.size() && gap_behind(result_.syncs[next_sync].event) == e;
             ++next_sync, first = false) {
          result_.syncs[next_sync].duration = first ? wait : 0;
        }
      }
      result_.events.push_back(reached);
    }
  }

  const RawPass& structure_;
  const TimingPass& timing_;
  WorkClock work_;
  std::vector<std::int64_t> times_;         // by event of the structure pass, as measured
  std::vector<std::int32_t> in_structure_;  // by event of the timing pass
  DeviceTimes result_;
};

}  // namespace

Result<DeviceTimes> device_times(const RawPass& structure, const TimingPass& timing,
                                 Nanoseconds clean_step_ns) {
  Result<std::vector<std::int32_t>> rows = align(structure, timing.pass);
  if (!rows) return rows.error();
  Result<Attribution> attribution = attribute(timing);
  if (!attribution) return attribution.error();
  if (Status status = check_quality(timing.activities, *attribution); !status) {
    return status.error();
  }
  return Builder(structure, timing, std::move(attribution).value(), *rows).run(clean_step_ns);
}

}  // namespace stowage::profiler
