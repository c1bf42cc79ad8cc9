#include "simulator/step/recomputed_step.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "simulator/step/grouped.h"
#include "simulator/step/grouped_rows.h"
#include "simulator/step/recomputed_order.h"
#include "simulator/step/step_composer.h"
#include "traces/columns.h"
#include "traces/site_text.h"

namespace stowage::simulator {
namespace {

// Copies row `from` of a table of the recording behind the last one of the step's.
template <class Table>
void copy_row(const Table& source, std::size_t from, Table& to) {
  std::array<const void*, 32> columns{};  // more than any table has
  std::size_t next = 0;
  visit_columns(source,
                [&](const char*, const auto& column, Rule) { columns.at(next++) = &column; });
  next = 0;
  visit_columns(to, [&](const char*, auto& column, Rule) {
    using Column = std::remove_reference_t<decltype(column)>;
    column.push_back((*static_cast<const Column*>(columns[next++]))[from]);
  });
}

// Writes the tables of the step, in the order of its events.
class RecomputedTables {
 public:
  RecomputedTables(const Trace& recording, const std::vector<Segment>& segments,
                   const std::vector<SavedId>& gone)
      : from_(recording),
        segments_(segments),
        order_(recording, segments, gone),
        spans_(recording) {}

  RecomputedStep write() {
    write_head();
    number_ops();
    write_storages();
    write_tensors();
    for (std::size_t e = 0; e < order_.events().size(); ++e) write_event(EventId(e));
    write_uses();
    write_device_rows();
    write_ends();
    trace_.fingerprint = from_.fingerprint;
    return std::move(step_);
  }

 private:
  using Again = std::vector<std::unordered_map<std::int32_t, std::int32_t>>;  // by run, row

  void write_head() {
    copy_head(from_, trace_);
    trace_.strings = from_.strings;
    trace_.lists = from_.lists;
    trace_.layers = from_.layers;
    again_ops_.resize(segments_.size());
    again_storages_.resize(segments_.size());
    again_tensors_.resize(segments_.size());
    again_saved_.resize(segments_.size());
    ops_.assign(from_.ops.size(), -1);
    saved_.assign(from_.saved.size(), -1);
    phase_of_.assign(from_.events.size(), PhaseId());
    for (std::size_t p = 0; p < from_.phases.size(); ++p) {
      std::fill(phase_of_.begin() + from_.phases.first_event[p].value,
                phase_of_.begin() + from_.phases.last_event[p].value + 1, PhaseId(p));
    }
    for (const Segment& segment : segments_) {
      SegmentRows& rows = step_.segments.emplace_back();
      rows.name = segment.name;
      rows.layer = segment.layer;
      rows.call = segment.call;
      rows.calls = segment.calls;
      rows.ops = segment.ops;  // number_ops() makes them the step's
      rows.made_by = segment.made_by;
    }
  }

  // Rows in the order in which ops begin.
  void number_ops() {
    std::int32_t next = 0;
    for (const OrderedEvent& event : order_.events()) {
      if (event.kind != EventKind::op_begin) continue;
      const std::int32_t op = from_.events.ref[event.from.index()];
      if (event.run < 0) {
        ops_[static_cast<std::size_t>(op)] = next++;
      } else {
        again_ops_[static_cast<std::size_t>(event.run)][op] = next++;
      }
    }
    for (SegmentRows& rows : step_.segments) {
      for (OpId& each : rows.ops) each = op(each, -1);
      for (OpId& each : rows.made_by) each = op(each, -1);
    }
  }

  template <class IdT>
  static IdT find(const Again& rows, std::int32_t run, IdT of) {
    const auto& map = rows[static_cast<std::size_t>(run)];
    const auto found = map.find(of.value);
    return found == map.end() ? IdT() : IdT(found->second);
  }
  [[nodiscard]] OpId op(OpId of, std::int32_t run) const {
    if (!of.valid()) return of;
    return run < 0 ? OpId(ops_[of.index()]) : find(again_ops_, run, of);
  }
  // In a run, of what it does not make: the recorded one.
  [[nodiscard]] StorageId storage(StorageId of, std::int32_t run) const {
    if (!of.valid()) return of;
    const StorageId again = run < 0 ? StorageId() : find(again_storages_, run, of);
    return again.valid() ? again : StorageId(storages_[of.index()]);
  }
  [[nodiscard]] TensorId tensor(TensorId of, std::int32_t run) const {
    if (!of.valid() || run < 0) return of;
    const TensorId again = find(again_tensors_, run, of);
    return again.valid() ? again : of;
  }

  void write_storages() {
    storages_.assign(from_.storages.size(), -1);
    Storages& to = trace_.storages;
    for (std::size_t row = 0; row < order_.storages().size(); ++row) {
      const auto [of, run] = order_.storages()[row];
      copy_row(from_.storages, of.index(), to);
      to.alloc_op.back() = op(of_alloc(of), run);
      to.alloc_event.back() = to.free_event.back() = EventId();
      to.natural_free_event.back() = EventId(order_.natural_deaths()[row]);
      step_.origins.storages.push_back(of);
      if (run < 0) {
        storages_[of.index()] = static_cast<std::int32_t>(row);
      } else {
        again_storages_[static_cast<std::size_t>(run)][of.value] = static_cast<std::int32_t>(row);
      }
    }
    for (StorageId& parameter : to.parameter) parameter = storage(parameter, -1);
  }
  [[nodiscard]] OpId of_alloc(StorageId storage) const {
    return from_.storages.alloc_op[storage.index()];
  }

  // Recorded rows stay; behind them those of storages that are made again.
  void write_tensors() {
    trace_.tensors = from_.tensors;
    Tensors& to = trace_.tensors;
    for (std::size_t t = 0; t < from_.tensors.size(); ++t) {
      to.storage[t] = storage(from_.tensors.storage[t], -1);
      to.producer[t] = op(from_.tensors.producer[t], -1);
    }
    std::vector<std::pair<std::size_t, TensorId>> of_storage;
    for (std::size_t t = 0; t < from_.tensors.size(); ++t) {
      const StorageId of = from_.tensors.storage[t];
      if (of.valid()) of_storage.emplace_back(of.index(), TensorId(t));
    }
    const Grouped<TensorId> tensors_of(from_.storages.size(), of_storage);
    for (const auto& [of, run] : order_.storages()) {
      if (run < 0) continue;
      for (const TensorId each : tensors_of[of.index()]) {
        again_tensors_[static_cast<std::size_t>(run)][each.value] =
            static_cast<std::int32_t>(to.size());
        copy_row(from_.tensors, each.index(), to);
        to.storage.back() = storage(of, run);
        to.producer.back() = op(from_.tensors.producer[each.index()], run);
      }
    }
  }

  void write_event(EventId event) {
    const OrderedEvent& of = order_.events()[event.index()];
    now_ += of.gap;
    Events& to = trace_.events;
    to.kind.push_back(of.kind);
    to.time.push_back(now_);
    to.op.push_back(op_at(of));
    enter_phase(of, event);
    to.ref.push_back(-1);  // where a row is written for it, behind that
    to.ref.back() = ref(of, event);
    step_.origins.events.push_back(of.from);
  }

  [[nodiscard]] OpId asked_by(const Segment& segment) const {
    return from_.events.op[segment.runs_at.index()];
  }
  // The innermost op that runs there. Around a run it is the one that asks for a saved tensor.
  OpId op_at(const OrderedEvent& of) {
    if (of.run < 0) {
      if (of.from.valid()) last_op_ = op(from_.events.op[of.from.index()], -1);
      return last_op_;
    }
    if (of.kind == EventKind::recompute_begin || of.kind == EventKind::recompute_end) {
      return op(asked_by(segments_[static_cast<std::size_t>(of.run)]), -1);
    }
    if (of.kind != EventKind::free) {
      op_again_ = of.from.valid() ? op(from_.events.op[of.from.index()], of.run) : OpId();
    }
    return op_again_;
  }

  void enter_phase(const OrderedEvent& of, EventId event) {
    Phases& to = trace_.phases;
    if (of.run < 0 && of.from.valid()) recorded_phase_ = phase_of_[of.from.index()];
    if (!recorded_phase_.valid()) return;
    const PhaseKind kind =
        of.run >= 0 ? PhaseKind::recompute : from_.phases.kind[recorded_phase_.index()];
    const std::int32_t micro_batch = from_.phases.micro_batch[recorded_phase_.index()];
    const bool is_new = to.size() == 0 || recorded_phase_ != phase_ || kind != to.kind.back();
    if (is_new) {
      to.kind.push_back(kind);
      to.micro_batch.push_back(micro_batch);
      to.first_event.push_back(event);
      to.last_event.push_back(event);
      phase_ = recorded_phase_;
    }
    to.last_event.back() = event;
  }

  std::int32_t ref(const OrderedEvent& of, EventId event) {
    const std::int32_t recorded = of.from.valid() ? from_.events.ref[of.from.index()] : -1;
    switch (of.kind) {
      case EventKind::alloc: {
        const StorageId row = storage(StorageId(recorded), of.run);
        trace_.storages.alloc_event[row.index()] = event;
        return row.value;
      }
      case EventKind::free: {
        const StorageId row = storage(of.storage.from, of.storage.run);
        trace_.storages.free_event[row.index()] = event;
        return row.value;
      }
      case EventKind::pack:
        return of.from.valid() ? saved(SavedId(recorded), of, event) : input_saved(of, event);
      case EventKind::unpack:
        return of.from.valid() ? unpack(UnpackId(recorded), event) : input_unpack(of, event);
      case EventKind::op_begin:
        write_op(OpId(recorded), of.run);
        return op(OpId(recorded), of.run).value;
      case EventKind::op_end:
        return op(OpId(recorded), of.run).value;
      case EventKind::gradient_accumulated:
      case EventKind::parameter_update_begin:
      case EventKind::parameter_update_end:
        return storage(StorageId(recorded), -1).value;
      default:
        if (of.from.valid()) return recorded;
        if (of.kind == EventKind::recompute_begin) rows_of(of).run_begin = event;
        if (of.kind == EventKind::recompute_end) rows_of(of).run_end = event;
        return of.layer.value;
    }
  }

  SegmentRows& rows_of(const OrderedEvent& of) {
    return step_.segments[static_cast<std::size_t>(of.run)];
  }

  void write_op(OpId of, std::int32_t run) {
    Ops& to = trace_.ops;
    copy_row(from_.ops, of.index(), to);
    to.parent.back() = op(from_.ops.parent[of.index()], run);
    to.forward_op.back() = run < 0 ? op(from_.ops.forward_op[of.index()], -1) : OpId();
    to.phase.back() = PhaseId(trace_.phases.size() - 1);
    to.start.back() = now_;
    step_.origins.ops.push_back(of);
  }

  std::int32_t saved(SavedId of, const OrderedEvent& at, EventId event) {
    const auto row = static_cast<std::int32_t>(trace_.saved.size());
    Saved& to = trace_.saved;
    copy_row(from_.saved, of.index(), to);
    const std::int32_t made_by = at.run < 0 ? order_.reads_from(at.from) : at.run;
    to.tensor.back() = tensor(from_.saved.tensor[of.index()], made_by);
    to.storage.back() = storage(from_.saved.storage[of.index()], made_by);
    to.op.back() = op(from_.saved.op[of.index()], at.run);
    to.event.back() = event;
    step_.origins.saved.push_back(of);
    if (at.run >= 0) {
      again_saved_[static_cast<std::size_t>(at.run)][of.value] = row;
      rows_of(at).again.emplace_back(row);
      return row;
    }
    saved_[of.index()] = row;
    for (std::size_t j = 0; j < segments_.size(); ++j) {
      if (segments_[j].saves(of)) step_.segments[j].saved.emplace_back(row);
    }
    return row;
  }

  std::int32_t input_saved(const OrderedEvent& at, EventId event) {
    const auto j = static_cast<std::size_t>(at.segment);
    const Segment::Input& input = segments_[j].inputs[static_cast<std::size_t>(at.input)];
    const TensorId of = input.tensor;
    const auto row = static_cast<std::int32_t>(trace_.saved.size());
    Saved& to = trace_.saved;
    const std::string& layer = from_.string(from_.layers.name[input.layer.index()]);
    const bool called_once = from_.layers.calls[input.layer.index()] <= 1;
    const std::int32_t ordinal = boundary_ordinal(input.number);
    trace_.strings.push_back(site_text(layer, input.call, ordinal, called_once));
    to.site.emplace_back(trace_.strings.size() - 1);
    to.layer.push_back(input.layer);
    to.call.push_back(input.call);
    to.ordinal.push_back(ordinal);
    to.tensor.push_back(of);
    to.storage.push_back(storage(from_.tensors.storage[of.index()], -1));
    to.storage_index.push_back(-1);
    to.op.emplace_back();
    to.event.push_back(event);
    to.version.push_back(version_at(from_.tensors.storage[of.index()], input.event));
    step_.origins.saved.emplace_back();
    step_.segments[j].inputs.emplace_back(row);
    inputs_[{at.segment, at.input}] = row;
    return row;
  }

  // Relative to the storage's first pack, as the recording counts: that of its last pack ahead of
  // the segment, and the writes since.
  [[nodiscard]] std::int64_t version_at(StorageId of, EventId event) const {
    if (!of.valid()) return 0;
    EventId since;
    std::int64_t version = 0;
    for (std::size_t s = 0; s < from_.saved.size() && from_.saved.event[s] < event; ++s) {
      if (from_.saved.storage[s] != of) continue;
      since = from_.saved.event[s];
      version = from_.saved.version[s];
    }
    if (!since.valid()) return 0;
    const std::vector<std::uint8_t>& primitive = from_.ops.primitive;
    const bool has_primitives = std::find(primitive.begin(), primitive.end(), 1) != primitive.end();
    for (std::size_t u = 0; u < from_.uses.size(); ++u) {
      const UseMode mode = from_.uses.mode[u];
      if (mode != UseMode::write && mode != UseMode::in_place) continue;
      if (from_.tensors.storage[from_.uses.tensor[u].index()] != of) continue;
      // What a composed op writes, one of its own does; that counts.
      const bool counts = !has_primitives || from_.ops.primitive[from_.uses.op[u].index()] != 0;
      if (!counts) continue;
      const EventId begin = spans_.begin(from_.uses.op[u]);
      if (since < begin && begin < event) ++version;
    }
    return version;
  }
  std::int32_t unpack(UnpackId of, EventId event) {
    const SavedId recorded = from_.unpacks.saved[of.index()];
    SavedId again;
    for (std::size_t j = 0; j < segments_.size() && !again.valid(); ++j) {
      if (!segments_[j].saves(recorded)) continue;
      again = find(again_saved_, static_cast<std::int32_t>(j), recorded);
    }
    Unpacks& to = trace_.unpacks;
    to.saved.push_back(again.valid() ? again : SavedId(saved_[recorded.index()]));
    to.op.push_back(op(from_.unpacks.op[of.index()], -1));
    to.event.push_back(event);
    to.released_event.emplace_back(order_.released(of));
    return static_cast<std::int32_t>(to.size()) - 1;
  }

  std::int32_t input_unpack(const OrderedEvent& at, EventId event) {
    Unpacks& to = trace_.unpacks;
    to.saved.emplace_back(inputs_.at({at.run, at.input}));
    to.op.emplace_back();
    to.event.push_back(event);
    to.released_event.emplace_back(order_.input_released(at.run, at.input));
    return static_cast<std::int32_t>(to.size()) - 1;
  }

  void write_uses() {
    const Grouped<std::uint32_t> uses_of = uses_by_op(from_);
    for (const OrderedEvent& event : order_.events()) {
      if (event.kind != EventKind::op_begin) continue;
      const OpId of(from_.events.ref[event.from.index()]);
      for (const std::uint32_t use : uses_of[of.index()]) {
        trace_.uses.op.push_back(op(of, event.run));
        const std::int32_t made_by = event.run < 0 ? order_.reads_from(event.from) : event.run;
        trace_.uses.tensor.push_back(tensor(from_.uses.tensor[use], made_by));
        trace_.uses.mode.push_back(from_.uses.mode[use]);
      }
    }
    LayerTensors& passed = trace_.layer_tensors;
    passed = from_.layer_tensors;
    for (EventId& event : passed.event) event = EventId(order_.at(event));
  }

  // A device row in the gap behind an event of the step, `run`'s or the recorded one.
  struct DeviceRow {
    EventId event;
    std::uint32_t from = 0;
    Nanoseconds shift = 0;
  };
  std::vector<DeviceRow> placed(const std::vector<EventId>& events) const {
    std::vector<DeviceRow> rows;
    const auto place = [&](std::size_t row, std::int32_t event) {
      rows.push_back({EventId(event), static_cast<std::uint32_t>(row),
                      trace_.events.time[static_cast<std::size_t>(event)] -
                          from_.events.time[events[row].index()]});
    };
    for (std::size_t row = 0; row < events.size(); ++row) {
      place(row, order_.at_or_before(events[row]));
      for (std::size_t j = 0; j < segments_.size(); ++j) {
        const std::int32_t again =
            order_.again_or_before(static_cast<std::int32_t>(j), events[row]);
        if (again >= 0) place(row, again);
      }
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const DeviceRow& a, const DeviceRow& b) { return a.event < b.event; });
    return rows;
  }

  void write_device_rows() {
    Nanoseconds least = 0;
    for (const DeviceRow& row : placed(from_.gpu.event)) {
      Gpu& to = trace_.gpu;
      copy_row(from_.gpu, row.from, to);
      to.event.back() = row.event;
      const OpId of = from_.gpu.op[row.from];
      const std::int32_t run = order_.events()[row.event.index()].run;
      to.op.back() = op(of, run);
      to.launch_start.back() += row.shift;
      to.start.back() = least = std::max(least, from_.gpu.start[row.from] + row.shift);
    }
    for (const DeviceRow& row : placed(from_.syncs.event)) {
      trace_.syncs.event.push_back(row.event);
      trace_.syncs.duration.push_back(from_.syncs.duration[row.from]);
    }
  }

  void write_ends() {
    // An op that a run interrupts takes as much longer.
    for (std::size_t o = 0; o < from_.ops.size(); ++o) {
      const auto row = static_cast<std::size_t>(ops_[o]);
      trace_.ops.duration[row] += interrupted(OpId(o));
    }
    number_saved_storages(trace_);
    trace_.setup = from_.setup;
    for (std::size_t row = 0; row < trace_.setup.size(); ++row) {
      if (StorageId& of = trace_.setup.storage[row]; of.valid()) of = storage(of, -1);
      EventId& event = trace_.setup.event[row];
      if (event.valid()) event = EventId(order_.at_or_before(event));
    }
  }
  [[nodiscard]] Nanoseconds interrupted(OpId op) const {
    Nanoseconds time = 0;
    for (std::size_t j = 0; j < segments_.size(); ++j) {
      OpId at = asked_by(segments_[j]);
      while (at.valid() && at != op) at = from_.ops.parent[at.index()];
      if (!at.valid()) continue;
      const std::vector<Nanoseconds>& times = trace_.events.time;
      time += times[step_.segments[j].run_end.index()] - times[step_.segments[j].run_begin.index()];
    }
    return time;
  }

  const Trace& from_;
  const std::vector<Segment>& segments_;
  RecomputedOrder order_;
  OpSpans spans_;
  RecomputedStep step_;
  Trace& trace_ = step_.trace;
  std::vector<std::int32_t> ops_;
  std::vector<std::int32_t> storages_;
  std::vector<std::int32_t> saved_;
  Again again_ops_;
  Again again_storages_;
  Again again_tensors_;
  Again again_saved_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> inputs_;  // by run, input: saved
  std::vector<PhaseId> phase_of_;                                         // by recorded event
  Nanoseconds now_ = 0;
  OpId last_op_;   // of the recorded events
  OpId op_again_;  // of those of a run
  PhaseId recorded_phase_;
  PhaseId phase_;
};

}  // namespace

Result<RecomputedStep> recompute(const Trace& recording, std::vector<Segment> segments,
                                 const std::vector<SavedId>& gone) {
  std::stable_sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) {
    return std::pair(a.is_chain(), a.first) < std::pair(b.is_chain(), b.first);
  });
  const auto bad = [](const Segment& segment, std::string message, std::string hint) {
    return Error{ErrorCode::bad_input, std::move(message), "", segment.entry, std::move(hint)};
  };
  std::vector<bool> is_owned(recording.saved.size(), false);
  for (std::size_t j = 0; j < segments.size(); ++j) {
    const Segment& segment = segments[j];
    const bool overlaps = j > 0 && !segment.is_chain() && segment.first < segments[j - 1].end;
    if (overlaps) {
      return bad(segment,
                 "segments '" + segments[j - 1].name + "' and '" + segment.name + "' overlap",
                 "let one of them run again, or the other");
    }
    for (const SavedId saved : segment.saved) {
      if (is_owned[saved.index()]) {
        return bad(segment,
                   recording.string(recording.saved.site[saved.index()]) +
                       " belongs to a segment that runs again, and cannot be made again by ops too",
                   "leave one of both out");
      }
      is_owned[saved.index()] = true;
    }
  }
  return RecomputedTables(recording, segments, gone).write();
}

}  // namespace stowage::simulator
