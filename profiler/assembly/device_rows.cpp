#include "profiler/assembly/device_rows.h"

#include <unordered_map>
#include <unordered_set>

namespace stowage::profiler {

void add_device_rows(const TimingPass& timing, const DeviceTimes& times, TraceRows& rows) {
  Trace& trace = rows.trace;
  Gpu& gpu = trace.gpu;
  const RawActivities& raw = timing.activities;
  for (const DeviceActivity& each : times.activities) {
    const RawActivity& activity = raw.activities[each.activity];
    gpu.kind.push_back(activity.kind);
    gpu.op.push_back(OpId(each.op));
    gpu.name.push_back(rows.string(activity.name < 0
                                       ? std::string(name_of(activity.kind))
                                       : raw.names[static_cast<std::size_t>(activity.name)]));
    gpu.correlation.push_back(activity.correlation);
    gpu.stream.push_back(each.stream);
    gpu.start.push_back(each.start);
    gpu.duration.push_back(each.duration);
    gpu.launch_start.push_back(each.launch_start);
    gpu.launch_duration.push_back(each.launch_duration);
    gpu.bytes.push_back(activity.bytes);
    gpu.event.push_back(EventId(each.event));
  }
  for (const DeviceSync& sync : times.syncs) {
    trace.syncs.event.push_back(EventId(sync.event));
    trace.syncs.duration.push_back(sync.duration);
  }
  trace.clock.base_unix_ns = timing.pass.events.front().time_ns;
  trace.clock.source = "realtime";
  trace.clock.causality_violations = times.attribution.causality_violations;
  trace.clock.largest_clamp = times.attribution.largest_clamp;
  trace.quality.dropped_records = raw.dropped_records;
  trace.quality.zero_timestamp_records = raw.zero_timestamps;
  trace.quality.unattributed_kernels = times.attribution.unattributed_count;
  trace.quality.unattributed_ns = times.attribution.unattributed_ns;
  trace.quality.join_mismatches = times.attribution.disagreements;
  trace.overhead.timing = {timing.step_ns, timing.pass.peak_requested};
}

void add_setup_rows(const RawRecording& recording, const RawPass& structure, TraceRows& rows) {
  Setup& setup = rows.trace.setup;
  if (recording.setup.empty()) return;
  std::unordered_set<std::int64_t> alive;
  for (const RawStorage& storage : structure.live_at_begin) alive.insert(storage.serial);
  const auto add = [&](std::int64_t serial, Bytes bytes) {
    setup.bytes.push_back(bytes);
    setup.free_of.push_back(-1);
    setup.storage.push_back(alive.contains(serial) ? rows.storage_of(serial) : StorageId());
  };
  std::unordered_map<std::int64_t, std::int32_t> row_of;
  for (const RawSetup& event : recording.setup) {
    if (!event.is_free) {
      row_of[event.serial] = static_cast<std::int32_t>(setup.size());
      add(event.serial, event.bytes);
    } else if (const auto found = row_of.find(event.serial); found != row_of.end()) {
      setup.bytes.push_back(0);
      setup.free_of.push_back(found->second);
      setup.storage.emplace_back();
    }
  }
  for (const RawStorage& storage : structure.live_at_begin) {
    if (row_of.contains(storage.serial) || storage.storage_class == StorageClass::gradient)
      continue;
    add(storage.serial, storage.bytes);
  }
}

}  // namespace stowage::profiler
