#include "profiler/assembly/attribution.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace stowage::profiler {

namespace {

constexpr Nanoseconds kLargestClamp = 5000;
constexpr std::int64_t kPerMille = 1000;
constexpr std::int64_t kLimitPerMille = 5;

Error environment(const std::string& message, const std::string& hint) {
  return {ErrorCode::environment, message, "", "", hint};
}

// Innermost op and extent of every op, in events of the pass.
struct OpExtents {
  std::vector<std::int32_t> running;  // by event: innermost op right after it, -1 = none
  std::vector<std::int32_t> first;    // by op: its begin event
  std::vector<std::int32_t> last;     // by op: last event before it was over
};

OpExtents extents_of(const RawPass& pass) {
  OpExtents extents;
  extents.running.reserve(pass.events.size());
  extents.first.assign(pass.ops.size(), -1);
  extents.last.assign(pass.ops.size(), -1);
  std::int32_t innermost = -1;
  const auto close_down_to = [&](std::int32_t op, std::int32_t event) {
    while (innermost >= 0 && innermost != op) {
      extents.last[static_cast<std::size_t>(innermost)] = event - 1;
      innermost = pass.ops[static_cast<std::size_t>(innermost)].parent;
    }
  };
  for (std::size_t i = 0; i < pass.events.size(); ++i) {
    const RawEvent& event = pass.events[i];
    const auto row = static_cast<std::int32_t>(i);
    if (event.kind == RawKind::op_begin) {
      const auto op = static_cast<std::size_t>(event.id);
      // Some nested ops have no end event: one is over when another begins that is not its child.
      close_down_to(pass.ops[op].parent, row);
      innermost = static_cast<std::int32_t>(op);
      extents.first[op] = row;
    } else if (event.kind == RawKind::op_end) {
      close_down_to(pass.ops[static_cast<std::size_t>(event.id)].parent, row);
    }
    extents.running.push_back(innermost);
  }
  close_down_to(-1, static_cast<std::int32_t>(pass.events.size()));
  return extents;
}

class Attributor {
 public:
  explicit Attributor(const TimingPass& timing)
      : pass_(timing.pass), raw_(timing.activities), extents_(extents_of(timing.pass)) {
    for (const RawExternal& external : raw_.externals) ids_[external.correlation] = external.id;
    for (std::size_t i = 0; i < raw_.launches.size(); ++i) {
      const auto [entry, is_new] = launches_.try_emplace(raw_.launches[i].correlation, i);
      if (!is_new && raw_.launches[i].start_ns < raw_.launches[entry->second].start_ns) {
        entry->second = i;
      }
    }
    begin_ns_ = pass_.events.front().time_ns;
    end_ns_ = pass_.events.back().time_ns;
  }

  Result<Attribution> run() {
    for (std::size_t i = 0; i < raw_.activities.size(); ++i) {
      if (Status status = attribute_one(i); !status) return status.error();
    }
    std::stable_sort(result_.activities.begin(), result_.activities.end(),
                     [this](const AttributedActivity& a, const AttributedActivity& b) {
                       const auto start = [this](const AttributedActivity& of) {
                         return raw_.launches[of.launch].start_ns;
                       };
                       return std::pair(a.event, start(a)) < std::pair(b.event, start(b));
                     });
    for (const RawSync& sync : raw_.syncs) waits_.push_back(sync);
    add_waits();
    return std::move(result_);
  }

 private:
  bool in_step(std::int64_t time) const { return time >= begin_ns_ && time < end_ns_; }

  bool by_hook(std::int64_t time) const {
    const auto after = std::upper_bound(
        pass_.hook_spans.begin(), pass_.hook_spans.end(), time,
        [](std::int64_t value, const RawSpan& span) { return value < span.begin_ns; });
    return after != pass_.hook_spans.begin() && time < std::prev(after)->end_ns;
  }

  bool ours(std::int64_t thread) const {
    return pass_.threads.empty() ||
           std::find(pass_.threads.begin(), pass_.threads.end(), thread) != pass_.threads.end();
  }

  // The last event at or before that time.
  std::int32_t event_at(std::int64_t time) const {
    const auto after = std::upper_bound(
        pass_.events.begin(), pass_.events.end(), time,
        [](std::int64_t value, const RawEvent& event) { return value < event.time_ns; });
    return static_cast<std::int32_t>(after - pass_.events.begin()) - 1;
  }

  void unattributed(const RawActivity& activity) {
    ++result_.unattributed_count;
    result_.unattributed_ns += activity.end_ns - activity.start_ns;
  }

  Status attribute_one(std::size_t row) {
    const RawActivity& activity = raw_.activities[row];
    const auto found = launches_.find(activity.correlation);
    if (found == launches_.end()) {
      if (in_step(activity.start_ns)) unattributed(activity);
      return Unit{};
    }
    const RawLaunch& launch = raw_.launches[found->second];
    const auto id = ids_.find(launch.correlation);
    if (!in_step(launch.start_ns) || by_hook(launch.start_ns) ||
        (id != ids_.end() && id->second == kExecutorId)) {
      return Unit{};
    }
    if (!ours(launch.thread)) {
      if (in_step(activity.start_ns)) unattributed(activity);
      return Unit{};
    }
    AttributedActivity attributed;
    attributed.activity = row;
    attributed.launch = found->second;
    attributed.event = event_at(launch.start_ns);
    attributed.op = extents_.running[static_cast<std::size_t>(attributed.event)];
    if (id != ids_.end()) follow_id(id->second, attributed);
    attributed.start_ns = std::max(activity.start_ns, launch.start_ns);
    const Nanoseconds early = launch.start_ns - activity.start_ns;
    if (early > kLargestClamp) {
      return environment("the device began a " + std::string(name_of(activity.kind)) + " " +
                             std::to_string(early) + " ns before it was launched",
                         "the clocks of CPU and GPU records differ; please report this");
    }
    if (early > 0) {
      ++result_.causality_violations;
      result_.largest_clamp = std::max(result_.largest_clamp, early);
    }
    if (attributed.op < 0 && activity.kind == GpuKind::kernel) {
      unattributed(activity);
    } else {
      result_.attributed_ns += activity.end_ns - activity.start_ns;
    }
    if (blocking(activity, launch)) waits_.push_back({launch.start_ns, launch.end_ns});
    result_.activities.push_back(attributed);
    return Unit{};
  }

  // The id decides; the event becomes the nearest one of that op.
  void follow_id(std::int64_t id, AttributedActivity& attributed) {
    const auto op = static_cast<std::size_t>(id);
    if (attributed.op == static_cast<std::int32_t>(id)) return;
    // Back in an outer op after a nested one: by time the nested one has not ended yet.
    for (std::int32_t at = attributed.op; at >= 0;
         at = pass_.ops[static_cast<std::size_t>(at)].parent) {
      if (at != static_cast<std::int32_t>(id)) continue;
      attributed.op = static_cast<std::int32_t>(id);
      return;
    }
    ++result_.disagreements;
    if (op >= extents_.first.size() || extents_.first[op] < 0) return;
    attributed.op = static_cast<std::int32_t>(id);
    attributed.event = std::clamp(attributed.event, extents_.first[op],
                                  std::max(extents_.first[op], extents_.last[op]));
  }

  static bool blocking(const RawActivity& activity, const RawLaunch& launch) {
    return activity.kind == GpuKind::memcpy && launch.end_ns >= activity.end_ns &&
           (activity.source == MemoryKind::pageable ||
            activity.destination == MemoryKind::pageable);
  }

  void add_waits() {
    std::sort(waits_.begin(), waits_.end(),
              [](const RawSync& a, const RawSync& b) { return a.start_ns < b.start_ns; });
    std::int64_t covered = begin_ns_;
    for (const RawSync& wait : waits_) {
      if (!in_step(wait.start_ns) || by_hook(wait.start_ns)) continue;
      // The recorder's own, at the step's end: everything was issued, and the last event follows.
      const std::int32_t event = event_at(wait.start_ns);
      if (wait.end_ns >= end_ns_ || event + 2 == static_cast<std::int32_t>(pass_.events.size())) {
        result_.own_waits.push_back({wait.start_ns, std::min(wait.end_ns, end_ns_)});
        continue;
      }
      const std::int64_t start = std::max(wait.start_ns, covered);
      if (start > wait.end_ns) continue;  // inside another one
      covered = wait.end_ns;
      result_.syncs.push_back({event, start, wait.end_ns});
    }
  }

  const RawPass& pass_;
  const RawActivities& raw_;
  OpExtents extents_;
  std::unordered_map<std::int64_t, std::int64_t> ids_;      // by correlation
  std::unordered_map<std::int64_t, std::size_t> launches_;  // by correlation
  std::vector<RawSync> waits_;
  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
  Attribution result_;
};

}  // namespace

Result<Attribution> attribute(const TimingPass& timing) {
  return Attributor(timing).run();
}

Status check_quality(const RawActivities& activities, const Attribution& attribution) {
  const std::string again = "record again; if it happens each time, please report it";
  if (activities.dropped_records != 0) {
    return environment("the GPU's recording lost " + std::to_string(activities.dropped_records) +
                           " activity records",
                       again);
  }
  if (activities.zero_timestamps != 0) {
    return environment(
        std::to_string(activities.zero_timestamps) + " activity records of the GPU carry no time",
        again);
  }
  const Nanoseconds all = attribution.attributed_ns + attribution.unattributed_ns;
  if (Wide{attribution.unattributed_ns} * kPerMille > Wide{all} * kLimitPerMille) {
    return environment(std::to_string(attribution.unattributed_ns) + " of " + std::to_string(all) +
                           " ns of GPU time (" + std::to_string(attribution.unattributed_count) +
                           " activities) belong to no op of the step",
                       "another thread or library of this process uses the GPU");
  }
  const auto launches = static_cast<std::int64_t>(attribution.activities.size());
  if (attribution.disagreements * kPerMille > launches * kLimitPerMille) {
    return environment(std::to_string(attribution.disagreements) + " of " +
                           std::to_string(launches) +
                           " launches were made in one op by their time and in another by their id",
                       again);
  }
  return Unit{};
}

Status check_sentinels(const RawActivities& activities, const RawSpan& first, const RawSpan& last) {
  const auto ran_in = [&](const RawSpan& span) {
    return std::any_of(activities.activities.begin(), activities.activities.end(),
                       [&](const RawActivity& activity) {
                         return activity.end_ns >= span.begin_ns &&
                                activity.start_ns <= span.end_ns;
                       });
  };
  const bool began = ran_in(first);
  if (began && ran_in(last)) return Unit{};
  return environment(
      std::string("no record came of the work that was launched when the recording ") +
          (began ? "stopped" : "began") + " (" + std::to_string(activities.activities.size()) +
          " activities, " + std::to_string(activities.launches.size()) + " launches, " +
          std::to_string(activities.externals.size()) + " external ids came)",
      "another profiler took the GPU's records over; end it and record again");
}

}  // namespace stowage::profiler
