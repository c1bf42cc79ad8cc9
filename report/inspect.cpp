#include "report/inspect.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "report/alive.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "traces/nearest.h"

namespace stowage::report {
namespace {

struct SavedFacts {
  std::vector<SavedId> first_saved;  // of each storage, -1 = never saved
  std::vector<std::uint8_t> in_use;  // an unpack of it is in use at the event
};

SavedFacts saved_facts(const Trace& trace, EventId event) {
  SavedFacts facts;
  facts.first_saved = first_packs(trace);
  facts.in_use.assign(trace.storages.size(), 0);
  for (std::size_t i = 0; i < trace.unpacks.size(); ++i) {
    const StorageId storage = trace.saved.storage[trace.unpacks.saved[i].index()];
    const EventId released = trace.unpacks.released_event[i];
    if (storage.valid() && trace.unpacks.event[i] <= event &&
        (!released.valid() || released >= event)) {
      facts.in_use[storage.index()] = 1;
    }
  }
  return facts;
}

// Memory changes at allocs and frees alone; the maximum is the first event that reaches it.
EventId highest_event(const std::vector<Bytes>& requested) {
  const auto highest = std::max_element(requested.begin(), requested.end());
  return EventId(static_cast<std::size_t>(highest - requested.begin()));
}

Result<EventId> event_of(const Trace& trace, const std::vector<Bytes>& requested,
                         const std::string& at) {
  if (at == "peak") return highest_event(requested);
  std::int64_t number = -1;
  const auto [end, status] = std::from_chars(at.data(), at.data() + at.size(), number);
  const bool numeric = status == std::errc() && end == at.data() + at.size();
  const auto ops = static_cast<std::int64_t>(trace.ops.size());
  if (numeric && (number < 0 || number >= ops)) {
    return Error{ErrorCode::usage, "--at " + at + ": no such op", "", "",
                 "the trace has " + std::to_string(ops) + " ops, numbered from 0"};
  }
  // An op is the moment's when it or one of its ancestors is the innermost op of the event.
  std::vector<std::uint8_t> wanted(trace.ops.size(), 0);
  bool any = false;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpId parent = trace.ops.parent[i];
    const bool own =
        numeric ? static_cast<std::int64_t>(i) == number : trace.string(trace.ops.name[i]) == at;
    wanted[i] = own || (parent.valid() && parent.index() < i && wanted[parent.index()] != 0);
    any = any || own;
  }
  if (!any) {
    std::vector<std::string> names = {"peak"};
    for (const StringId name : trace.ops.name) {
      if (names.back() != trace.string(name)) names.push_back(trace.string(name));
    }
    const std::string near = nearest(at, names);
    return Error{ErrorCode::usage, "--at " + at + ": no op of this name", "", "",
                 near.empty() ? "peak, an op's number or its name" : "did you mean " + near + "?"};
  }
  EventId best;
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const OpId op = trace.events.op[e];
    if (!op.valid() || wanted[op.index()] == 0) continue;
    if (!best.valid() || requested[e] > requested[best.index()]) best = EventId(e);
  }
  if (best.valid()) return best;
  return Error{ErrorCode::usage, "--at " + at + ": the op has no event in this trace", "", "",
               "name an op that allocates"};
}

std::string group_name(const Trace& trace, std::size_t storage, GroupBy by) {
  switch (by) {
    case GroupBy::layer:
      return layer_name(trace, trace.storages.layer[storage]);
    case GroupBy::op: {
      const OpId op = trace.storages.alloc_op[storage];
      return op.valid() ? trace.string(trace.ops.name[op.index()]) : "(before the step)";
    }
    case GroupBy::storage_class:
      break;
  }
  return stowage::name_of(trace.storages.storage_class[storage]);
}

std::vector<GroupRow> group(const Trace& trace, const std::vector<AliveRow>& alive, GroupBy by) {
  std::map<std::string, GroupRow> rows;
  for (const AliveRow& row : alive) {
    GroupRow& group_row = rows[group_name(trace, row.storage.index(), by)];
    ++group_row.storages;
    group_row.bytes += row.bytes;
  }
  std::vector<GroupRow> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const GroupRow& a, const GroupRow& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::vector<PhaseRow> phase_rows(const Trace& trace, const std::vector<Bytes>& requested,
                                 Nanoseconds step) {
  std::vector<PhaseRow> rows;
  const auto& phases = trace.phases;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    PhaseRow row;
    row.kind = phases.kind[i];
    row.micro_batch = phases.micro_batch[i];
    const std::size_t first = phases.first_event[i].index();
    const std::size_t last = phases.last_event[i].index();
    row.begin = trace.events.time[first];
    const Nanoseconds end =
        i + 1 < phases.size() ? trace.events.time[phases.first_event[i + 1].index()] : step;
    row.duration = end - row.begin;
    row.peak = *std::max_element(requested.begin() + static_cast<std::ptrdiff_t>(first),
                                 requested.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    rows.push_back(row);
  }
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const PhaseId phase = trace.ops.phase[i];
    if (!trace.ops.parent[i].valid() && phase.valid()) ++rows[phase.index()].ops;
  }
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    const OpId op = trace.gpu.op[i];
    const PhaseId phase = op.valid() ? trace.ops.phase[op.index()] : PhaseId();
    if (phase.valid()) rows[phase.index()].gpu += trace.gpu.duration[i];
  }
  return rows;
}

bool is_backward(const Trace& trace, std::size_t op) {
  const PhaseId phase = trace.ops.phase[op];
  return phase.valid() && trace.phases.kind[phase.index()] == PhaseKind::backward;
}

std::vector<LayerRow> layer_rows(const Trace& trace, const std::vector<AliveRow>& alive,
                                 const SavedFacts& facts) {
  std::vector<LayerRow> rows(trace.layers.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].name = trace.string(trace.layers.name[i]);
    rows[i].calls = trace.layers.calls[i];
    rows[i].parameter_bytes = trace.layers.parameter_bytes[i];
  }
  if (rows.empty()) return rows;
  const auto row_of = [&rows](LayerId layer) -> LayerRow& {
    return rows[layer.valid() ? layer.index() : 0];
  };
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.parent[i].valid()) continue;
    LayerRow& row = row_of(trace.ops.layer[i]);
    ++row.ops;
    if (trace.gpu.size() == 0) {
      (is_backward(trace, i) ? row.backward : row.forward) += trace.ops.duration[i];
    }
  }
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    const OpId op = trace.gpu.op[i];
    if (!op.valid()) continue;
    LayerRow& row = row_of(trace.ops.layer[op.index()]);
    (is_backward(trace, op.index()) ? row.backward : row.forward) += trace.gpu.duration[i];
  }
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const SavedId saved = facts.first_saved[i];
    if (saved.valid() && trace.storages.alloc_event[i].valid() && trace.storages.device[i] == 0) {
      row_of(trace.saved.layer[saved.index()]).saved_bytes += trace.storages.bytes[i];
    }
  }
  for (const AliveRow& row : alive) {
    row_of(trace.storages.layer[row.storage.index()]).bytes_at += row.bytes;
  }
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&trace](std::size_t a, std::size_t b) {
    return trace.layers.forward_order[a] < trace.layers.forward_order[b];
  });
  std::vector<LayerRow> sorted;
  for (const std::size_t i : order) {
    const LayerRow& row = rows[i];
    if (row.ops > 0 || row.parameter_bytes > 0 || row.saved_bytes > 0 || row.bytes_at > 0) {
      sorted.push_back(row);
    }
  }
  return sorted;
}

// A GPU's events have the times of their launches: on the device they are those of its replay.
BytesByUse by_use(const Trace& trace, const Alive& alive, Nanoseconds step) {
  const StorageUses uses(trace);
  if (trace.gpu.size() == 0) return bytes_by_use(trace, uses, alive, trace.events.time, step);
  const simulator::StepIndex index(trace);
  simulator::ReplayDetail detail;
  const simulator::ReplayResult result =
      simulator::replay(index, simulator::resident_schedule(index), &detail);
  return bytes_by_use(trace, uses, alive, detail.time, result.step_ns);
}

}  // namespace

// Where the step did not fit and so was never timed by itself: what it takes to replay it. Its
// events on a GPU are of launches, which waited for nothing.
Nanoseconds measured_step(const Trace& trace) {
  if (trace.overhead.clean.step_ns > 0) return trace.overhead.clean.step_ns;
  if (trace.run.source != "recorded" || trace.gpu.size() == 0) return trace.events.time.back();
  const simulator::StepIndex index(trace);
  return simulator::replay(index, simulator::resident_schedule(index)).step_ns;
}

BytesByUse use_at_peak(const Trace& trace) {
  if (trace.events.size() == 0) return {};
  const Result<EventId> peak = event_of(trace, requested_after(trace), "peak");
  if (!peak) return {};
  return by_use(trace, AliveIndex(trace).at(*peak), measured_step(trace));
}

Result<InspectReport> inspect(const Trace& trace, GroupBy by, const std::string& at) {
  if (trace.events.size() == 0) {
    return Error{ErrorCode::bad_input, "the trace has no events", "", "/events", ""};
  }
  InspectReport report;
  const std::vector<Bytes> requested = requested_after(trace);
  const Result<EventId> event = event_of(trace, requested, at);
  if (!event) return event.error();

  report.moment = moment_at(trace, *event);
  report.moment.requested = requested[event->index()];
  report.moment.is_peak = at == "peak";
  for (std::size_t i = 0; i < trace.peaks.size() && report.moment.is_peak; ++i) {
    if (trace.peaks.device[i] != 0) continue;
    report.moment.active = trace.peaks.active[i];
    report.moment.reserved = trace.peaks.reserved[i];
  }
  report.step = measured_step(trace);
  report.curve = {trace.events.time, requested, trace.events.time.back()};
  report.phases = phase_rows(trace, requested, trace.events.time.back());
  for (const OpId parent : trace.ops.parent) report.outermost_ops += parent.valid() ? 0 : 1;

  const SavedFacts facts = saved_facts(trace, *event);
  const auto movable = [&](StorageId storage) {
    const std::size_t i = storage.index();
    return facts.first_saved[i].valid() && trace.storages.alloc_event[i].valid() &&
           trace.storages.device[i] == 0;
  };
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    if (!movable(StorageId(i))) continue;
    ++report.movable.storages;
    report.movable.bytes += trace.storages.bytes[i];
  }
  const Alive alive = AliveIndex(trace).at(*event);
  report.by_use = by_use(trace, alive, report.step);
  for (std::size_t row_number = 0; row_number < alive.storages.size(); ++row_number) {
    const AliveStorage& each = alive.storages[row_number];
    const std::size_t i = each.storage.index();
    AliveRow row{each.storage,
                 each.bytes,
                 trace.storages.storage_class[i],
                 layer_name(trace, trace.storages.layer[i]),
                 "",
                 "",
                 false,
                 report.by_use.rows[row_number].use};
    const OpId op = trace.storages.alloc_op[i];
    if (op.valid()) row.made_by = trace.string(trace.ops.name[op.index()]);
    if (each.saved.valid()) row.site = trace.string(trace.saved.site[each.saved.index()]);
    if (movable(each.storage)) {
      report.movable.alive_bytes += each.bytes;
      const EventId natural = trace.storages.natural_free_event[i];
      row.could_leave = trace.saved.event[each.saved.index()] < *event && natural.valid() &&
                        natural < *event && facts.in_use[i] == 0;
      if (row.could_leave) report.movable.away_bytes += each.bytes;
    }
    report.alive.push_back(std::move(row));
  }
  report.groups = group(trace, report.alive, by);
  report.classes = group(trace, report.alive, GroupBy::storage_class);
  report.layers = layer_rows(trace, report.alive, facts);
  return report;
}

}  // namespace stowage::report
