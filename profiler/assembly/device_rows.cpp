#include "profiler/assembly/device_rows.h"

#include <map>
#include <unordered_set>

#include "profiler/assembly/first_step.h"

namespace stowage::profiler {

namespace {

class SetupRows {
 public:
  SetupRows(const RawPass& structure, TraceRows& rows)
      : lasting_(lasting_serials(structure)), rows_(rows), setup_(rows.trace.setup) {
    for (const RawStorage& storage : structure.live_at_begin) alive_.insert(storage.serial);
  }

  [[nodiscard]] bool lasts(std::int64_t serial) const { return lasting_.contains(serial); }

  // A free of what has no row is left out.
  void add(const RawSetup& raw, EventId event) {
    if (raw.is_free) {
      if (const auto found = open_.find(raw.serial); found != open_.end()) {
        push(0, found->second, StorageId(), event);
        open_.erase(found);
      }
      return;
    }
    open_[raw.serial] = static_cast<std::int32_t>(setup_.size());
    push(raw.bytes, -1, alive_.contains(raw.serial) ? rows_.storage_of(raw.serial) : StorageId(),
         event);
  }

  void drop_what_is_gone(EventId event) {
    for (const auto& [serial, row] : open_) {
      if (!alive_.contains(serial)) push(0, row, StorageId(), event);
    }
  }

 private:
  void push(Bytes bytes, std::int32_t free_of, StorageId storage, EventId event) {
    setup_.bytes.push_back(bytes);
    setup_.free_of.push_back(free_of);
    setup_.storage.push_back(storage);
    setup_.event.push_back(event);
  }

  std::unordered_set<std::int64_t> alive_;
  std::unordered_set<std::int64_t> lasting_;
  TraceRows& rows_;
  Setup& setup_;
  std::map<std::int64_t, std::int32_t> open_;  // rows of allocations that are not freed, by serial
};

}  // namespace

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
  if (recording.setup.empty()) return;
  rows.trace.quality.adopted_allocations = recording.adopted;
  SetupRows made(structure, rows);
  for (const RawSetup& each : recording.setup) {
    if (!each.in_first_step) made.add(each, EventId());
  }
  const auto extras = first_step_extras(recording.setup, structure);
  if (!extras) {
    for (const RawSetup& each : recording.setup) {
      if (each.in_first_step && (each.is_free || made.lasts(each.serial)))
        made.add(each, EventId());
    }
  }
  std::unordered_set<std::int64_t> logged;
  for (const RawSetup& each : recording.setup) logged.insert(each.serial);
  for (const RawStorage& storage : structure.live_at_begin) {
    if (logged.contains(storage.serial) || !made.lasts(storage.serial)) continue;
    made.add({storage.serial, storage.bytes, false, false}, EventId());
  }
  if (extras) {
    for (const FirstStepExtra& extra : *extras) made.add(recording.setup[extra.row], extra.event);
  }
  made.drop_what_is_gone(extras ? EventId(structure.events.size() - 1) : EventId());
}

}  // namespace stowage::profiler
