#include "report/timeline.h"

#include <algorithm>
#include <string_view>

#include "report/memory_curve.h"
#include "report/transfers.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"
#include "traces/result.h"

namespace stowage::report {
namespace {

std::vector<Span>& lane_of(Timeline& timeline, Lane which) {
  return timeline.lanes[static_cast<std::size_t>(which)];
}

Span span_of_op(const Trace& trace, OpId op) {
  Span span;
  span.row = op.value;
  span.name = trace.ops.name[op.index()];
  span.layer = trace.ops.layer[op.index()];
  span.op = op;
  return span;
}

void sort_by_begin(std::vector<Span>& spans) {
  const auto earlier = [](const Span& a, const Span& b) { return a.begin < b.begin; };
  if (!std::is_sorted(spans.begin(), spans.end(), earlier)) {
    std::stable_sort(spans.begin(), spans.end(), earlier);
  }
}

// One span an outermost op, between its events at `time`, and within it one each primitive op that
// it is made of.
void add_ops(const Trace& trace, const std::vector<Nanoseconds>& time, std::vector<Span>& spans) {
  std::vector<EventId> begin(trace.ops.size());
  spans.reserve(spans.size() + trace.ops.size());
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const EventKind kind = trace.events.kind[e];
    if (kind != EventKind::op_begin && kind != EventKind::op_end) continue;
    const OpId op(trace.events.ref[e]);
    if (kind == EventKind::op_begin) {
      begin[op.index()] = EventId(e);
      continue;
    }
    Span span = span_of_op(trace, op);
    span.event = begin[op.index()].valid() ? begin[op.index()] : EventId(e);
    span.begin = time[span.event.index()];
    span.end = std::max(span.begin, time[e]);
    spans.push_back(span);
  }
  sort_by_begin(spans);
}

Lane lane_of_copy(std::string_view name) {
  if (name.find("DtoH") != std::string_view::npos) return Lane::d2h;
  if (name.find("HtoD") != std::string_view::npos) return Lane::h2d;
  return Lane::compute;
}

void add_device(const Trace& trace, Timeline& timeline) {
  const Gpu& gpu = trace.gpu;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    Span span;
    if (gpu.op[i].valid()) span = span_of_op(trace, gpu.op[i]);
    span.row = static_cast<std::int32_t>(i);
    span.name = gpu.name[i];
    span.event = gpu.event[i];
    span.begin = gpu.start[i];
    span.end = gpu.start[i] + gpu.duration[i];
    span.bytes = gpu.bytes[i];
    Lane lane = Lane::compute;
    span.kind = gpu.kind[i] == GpuKind::kernel ? SpanKind::kernel : SpanKind::memset;
    if (gpu.kind[i] == GpuKind::memcpy) {
      span.kind = SpanKind::memcpy;
      lane = lane_of_copy(trace.string(gpu.name[i]));
    }
    lane_of(timeline, lane).push_back(span);
  }
  std::vector<Span>& launch = lane_of(timeline, Lane::launch);
  for (std::size_t i = 0; i < trace.syncs.size(); ++i) {
    Span span;
    span.kind = SpanKind::sync;
    span.row = static_cast<std::int32_t>(i);
    span.event = trace.syncs.event[i];
    span.op = trace.events.op[span.event.index()];
    if (span.op.valid()) span.layer = trace.ops.layer[span.op.index()];
    span.begin = trace.events.time[span.event.index()];
    span.end = span.begin + trace.syncs.duration[i];
    launch.push_back(span);
  }
  for (auto& lane : timeline.lanes) sort_by_begin(lane);
}

// The recorded counters, held from one event to the next.
std::vector<Bytes> counter(const Trace& trace, const std::vector<Bytes>& recorded) {
  if (std::all_of(recorded.begin(), recorded.end(), [](Bytes b) { return b < 0; })) return {};
  std::vector<Bytes> after(trace.events.size(), -1);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const std::size_t last =
        i + 1 < recorded.size() ? trace.allocator.event[i + 1].index() : trace.events.size();
    for (std::size_t e = trace.allocator.event[i].index(); e < last; ++e) after[e] = recorded[i];
  }
  return after;
}

Span span_of_copy(const Trace& trace, const simulator::Schedule& schedule, StayId stay,
                  bool is_store) {
  const simulator::Tenant& tenant = schedule.tenant(stay);
  Span span;
  span.stay = stay;
  span.is_store = is_store;
  span.tenant_kind = tenant.kind;
  span.storage = tenant.storage;
  span.bytes = tenant.bytes;
  span.layer = tenant.kind->layer(trace, tenant);
  if (serves_saved(schedule, stay)) {
    span.name = trace.saved.site[tenant.saved.front().index()];
  } else if (span.layer.valid()) {
    span.name = trace.layers.name[span.layer.index()];
  }
  return span;
}

// With the gradient of this stay; of the parameter.
Span span_of_update(const Trace& trace, const simulator::HostUpdate& update) {
  Span span;
  span.stay = update.stay;
  span.storage = update.of;
  span.bytes = update.bytes;
  span.layer = trace.storages.layer[update.of.index()];
  if (span.layer.valid()) span.name = trace.layers.name[span.layer.index()];
  return span;
}

void add_updates(const Trace& trace, const std::vector<simulator::HostUpdate>& updates,
                 const simulator::ReplayDetail& detail, std::vector<Span>& spans) {
  for (std::size_t i = 0; i < detail.host_updates.size(); ++i) {
    Span span = span_of_update(trace, updates[i]);
    span.row = static_cast<std::int32_t>(i);
    span.kind = SpanKind::update;
    span.begin = detail.host_updates[i].start;
    span.end = detail.host_updates[i].end;
    spans.push_back(span);
  }
}

// Where compute, or whoever issues, waited.
Span span_of_stall(const Trace& trace, const simulator::Schedule& schedule,
                   const std::vector<simulator::HostUpdate>& updates,
                   const simulator::Stall& stall) {
  if (!stall.is_update) return span_of_copy(trace, schedule, stall.stay, stall.is_store);
  const auto update = std::find_if(updates.begin(), updates.end(),
                                   [&](const auto& each) { return each.stay == stall.stay; });
  Span span = span_of_update(trace, *update);
  span.is_update = true;
  return span;
}

// "reload of layers.3.mlp#2", "load of parameter of head".
std::string copy_text(const Span& span, const std::string& name) {
  if (span.tenant_kind == &simulator::kSavedTensor) {
    return (span.is_store ? "offload of " : "reload of ") + name;
  }
  return std::string(span.is_store ? "store of " : "load of ") + span.tenant_kind->name + " of " +
         name;
}

}  // namespace

const char* name_of(Lane value) {
  switch (value) {
    case Lane::launch:
      return "launch";
    case Lane::compute:
      return "compute";
    case Lane::d2h:
      return "d2h";
    case Lane::h2d:
      return "h2d";
    case Lane::stalls:
      return "stalls";
    case Lane::updates:
      return "updates";
  }
  STOWAGE_ASSERT(false && "unknown lane");
}

const char* title_of(Lane lane) {
  switch (lane) {
    case Lane::launch:
      return "CPU launch";
    case Lane::compute:
      return "Compute";
    case Lane::d2h:
      return "Copy out (D2H)";
    case Lane::h2d:
      return "Copy back (H2D)";
    case Lane::stalls:
      return "Stalls";
    case Lane::updates:
      return "Host updates";
  }
  STOWAGE_ASSERT(false && "unknown lane");
}

const char* name_of(SpanKind value) {
  switch (value) {
    case SpanKind::op:
      return "op";
    case SpanKind::kernel:
      return "kernel";
    case SpanKind::memcpy:
      return "memcpy";
    case SpanKind::memset:
      return "memset";
    case SpanKind::sync:
      return "sync";
    case SpanKind::offload:
      return "offload";
    case SpanKind::reload:
      return "reload";
    case SpanKind::load:
      return "load";
    case SpanKind::store:
      return "store";
    case SpanKind::stall:
      return "stall";
    case SpanKind::update:
      return "update";
  }
  STOWAGE_ASSERT(false && "unknown kind of span");
}

Timeline recorded_timeline(const Trace& trace) {
  Timeline timeline;
  if (trace.events.size() == 0) return timeline;
  timeline.time = trace.events.time;
  timeline.requested = requested_after(trace);
  timeline.active = counter(trace, trace.allocator.active);
  timeline.reserved = counter(trace, trace.allocator.reserved);
  timeline.phases = phase_spans(trace, trace.events.time);
  timeline.end = trace.events.time.back();
  const bool has_launch = trace.gpu.size() > 0;
  add_ops(trace, trace.events.time, lane_of(timeline, has_launch ? Lane::launch : Lane::compute));
  if (has_launch) add_device(trace, timeline);
  for (const auto& lane : timeline.lanes) {
    for (const Span& span : lane) timeline.end = std::max(timeline.end, span.end);
  }
  return timeline;
}

Timeline simulated_timeline(const Trace& trace, const simulator::Schedule& schedule,
                            const simulator::ReplayResult& result,
                            const simulator::ReplayDetail& detail) {
  Timeline timeline;
  timeline.is_simulated = true;
  if (trace.events.size() == 0) return timeline;
  timeline.time = detail.time;
  timeline.requested = detail.requested;
  timeline.active = detail.active;
  timeline.reserved = detail.reserved;
  timeline.phases = phase_spans(trace, detail.time);
  timeline.end = result.step_ns;
  add_ops(trace, detail.time, lane_of(timeline, Lane::compute));
  if (!detail.launch.empty()) add_ops(trace, detail.launch, lane_of(timeline, Lane::launch));
  for (std::size_t i = 0; i < detail.transfers.size(); ++i) {
    const simulator::Transfer& transfer = detail.transfers[i];
    Span span = span_of_copy(trace, schedule, transfer.stay, transfer.is_store);
    span.row = static_cast<std::int32_t>(i);
    span.begin = transfer.start;
    span.end = transfer.end;
    const bool is_saved = serves_saved(schedule, transfer.stay);
    if (transfer.is_store) {
      span.kind = is_saved ? SpanKind::offload : SpanKind::store;
    } else {
      span.kind = is_saved ? SpanKind::reload : SpanKind::load;
    }
    span.on_compute =
        mode_of_copy(schedule, transfer.stay, transfer.is_store) == simulator::CopyMode::compute;
    lane_of(timeline, transfer.is_store ? Lane::d2h : Lane::h2d).push_back(span);
  }
  const std::vector<simulator::HostUpdate> updates = simulator::host_updates(trace, schedule);
  add_updates(trace, updates, detail, lane_of(timeline, Lane::updates));
  for (std::size_t i = 0; i < result.stalls.size(); ++i) {
    const simulator::Stall& stall = result.stalls[i];
    Span span = span_of_stall(trace, schedule, updates, stall);
    span.row = static_cast<std::int32_t>(i);
    span.kind = SpanKind::stall;
    span.event = stall.event;
    span.op = trace.events.op[stall.event.index()];
    span.begin = stall.start;
    span.end = stall.start + stall.duration;
    lane_of(timeline, Lane::stalls).push_back(span);
  }
  for (auto& lane : timeline.lanes) sort_by_begin(lane);
  return timeline;
}

std::string label_of(const Trace& trace, const Span& span) {
  const std::string name = span.name.valid() ? trace.string(span.name) : std::string("-");
  switch (span.kind) {
    case SpanKind::op:
    case SpanKind::kernel:
    case SpanKind::memcpy:
    case SpanKind::memset:
      return name;
    case SpanKind::sync:
      return "waits for the device";
    case SpanKind::offload:
    case SpanKind::reload:
    case SpanKind::load:
    case SpanKind::store:
      return copy_text(span, name);
    case SpanKind::update:
      return "update of parameter of " + name;
    case SpanKind::stall:
      break;
  }
  if (span.is_update) return "waits for the host's update of parameter of " + name;
  if (span.tenant_kind == &simulator::kSavedTensor) return "waits for " + copy_text(span, name);
  return std::string("waits for the ") + span.tenant_kind->name + " of " + name;
}

}  // namespace stowage::report
