#include "simulator/step/step_composer.h"

#include <algorithm>
#include <utility>

#include "simulator/step/step_holds.h"
#include "simulator/step/step_names.h"
#include "traces/fingerprint.h"

namespace stowage::simulator {

void copy_head(const Trace& recording, Trace& trace) {
  trace.schema = recording.schema;
  trace.run = recording.run;
  trace.env = recording.env;
  trace.clock = recording.clock;
  trace.quality = recording.quality;
  trace.calibration = recording.calibration;
}

namespace {

void find_frees(const StepLayout& layout, Trace& trace, StepWriter& writer) {
  Storages& storages = trace.storages;
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (trace.events.kind[e] != EventKind::free) continue;
    EventId& free = storages.free_event[static_cast<std::size_t>(trace.events.ref[e])];
    if (free.valid()) {
      writer.fail("event " + std::to_string(e) + " of the step frees a storage again");
    }
    free = EventId(e);
  }
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages.free_event[s].valid()) continue;
    const auto [source, row] = origin_of(layout, StorageId(s));
    const StepSource& of = layout.sources()[static_cast<std::size_t>(source)];
    const EventId free = of.trace->storages.free_event[row.index()];
    if (!free.valid() || (source == 0 && layout.leaves_out(free))) continue;
    writer.fail("storage " + std::to_string(row.value) + " of pass '" + of.name +
                "' is freed there, and by no piece of the step");
  }
}

// A part of a placement that is in one phase of its source.
struct PhasePart {
  EventId first;
  EventId end;
  PhaseId phase;
};

template <class F>
void each_phase_part(const StepLayout& layout, const Placement& placement, F&& part) {
  const StepSource& source = layout.source_of(placement);
  const Phases& phases = source.trace->phases;
  for (EventId first = placement.first; first < placement.end;) {
    const PhaseId phase = source.rows->phase(first);
    if (!phase.valid()) return;
    const EventId end(std::min(phases.last_event[phase.index()].value + 1, placement.end.value));
    part(PhasePart{first, end, phase});
    first = end;
  }
}

}  // namespace

void write_times(const StepLayout& layout, const Placement& placement, Trace& trace) {
  const std::vector<Nanoseconds>& from = layout.source_of(placement).trace->events.time;
  std::vector<Nanoseconds>& to = trace.events.time;
  std::size_t row = placement.at.index();
  Nanoseconds now = row > 0 ? to[row - 1] : 0;
  for (std::size_t e = placement.first.index(); e < placement.end.index(); ++e) {
    if (e > 0) now += from[e] - from[e - 1];
    to[row++] = now;
  }
}

void write_phases(const StepLayout& layout, Trace& trace) {
  Phases& to = trace.phases;
  to = Phases();
  for (const Placement& placement : layout.placements()) {
    const StepSource& source = layout.source_of(placement);
    const Phases& from = source.trace->phases;
    each_phase_part(layout, placement, [&](const PhasePart& part) {
      const PhaseKind kind = from.kind[part.phase.index()];
      const std::int32_t micro_batch =
          placement.micro_batch >= 0 ? placement.micro_batch : from.micro_batch[part.phase.index()];
      const std::int32_t shift = placement.at.value - placement.first.value;
      if (to.size() == 0 || to.kind.back() != kind || to.micro_batch.back() != micro_batch) {
        to.kind.push_back(kind);
        to.micro_batch.push_back(micro_batch);
        to.first_event.emplace_back(part.first.value + shift);
        to.last_event.emplace_back();
      }
      to.last_event.back() = EventId(part.end.value - 1 + shift);
      const bool is_all = part.first == placement.first && part.end == placement.end;
      const std::size_t table = index_of(RowTable::ops);
      const std::int32_t behind = placement.to[table] - placement.from[table];
      const std::int32_t first =
          is_all ? placement.from[table] : source.rows->first_at(RowTable::ops, part.first);
      const std::int32_t end =
          is_all ? first + placement.count[table] : source.rows->first_at(RowTable::ops, part.end);
      const auto begin = trace.ops.phase.begin();
      std::fill(begin + (behind + first), begin + (behind + end), PhaseId(to.size() - 1));
    });
  }
}

void write_device_starts(const StepLayout& layout, StepWriter& writer) {
  Nanoseconds least = 0;
  for (const Placement& placement : layout.placements()) writer.device_starts(placement, least);
}

void number_saved_storages(Trace& trace) {
  std::vector<std::int32_t> number(trace.storages.size(), -1);
  std::int32_t next = 0;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId storage = trace.saved.storage[s];
    if (!storage.valid()) continue;
    std::int32_t& known = number[storage.index()];
    if (known < 0) known = next++;
    trace.saved.storage_index[s] = known;
  }
}

void write_setup(const StepLayout& layout, const StepStorages& storages, Trace& trace) {
  trace.setup = layout.sources().front().trace->setup;
  EventId before;
  for (std::size_t row = 0; row < trace.setup.size(); ++row) {
    if (StorageId& of = trace.setup.storage[row]; of.valid()) of = storages.recorded(of);
    EventId& event = trace.setup.event[row];
    if (!event.valid()) continue;
    event = std::max({layout.event_at_or_before(0, event), before, EventId(std::size_t{0})});
    before = event;
  }
}

void write_head(const StepLayout& layout, Trace& trace) {
  copy_head(*layout.sources().front().trace, trace);
}

Status write_rows(const StepLayout& layout, const StepStorages& storages, const StepNames& names,
                  Trace& trace) {
  StepWriter writer(layout, storages, names, trace);
  writer.resize();
  writer.existing_storages();
  for (const Placement& placement : layout.placements()) {
    write_times(layout, placement, trace);
    writer.piece(placement);
  }
  if (writer.error()) return *writer.error();
  write_phases(layout, trace);
  write_device_starts(layout, writer);
  find_frees(layout, trace, writer);
  if (writer.error()) return *writer.error();
  find_holds(layout, storages, trace);
  number_saved_storages(trace);
  write_setup(layout, storages, trace);
  return Unit{};
}

Result<Trace> compose(const StepLayout& layout) {
  Trace trace;
  StepStorages storages(layout);
  if (Status found = storages.find(); !found) return std::move(found).error();
  const StepNames names(layout.sources(), trace);
  write_head(layout, trace);
  if (Status done = write_rows(layout, storages, names, trace); !done) {
    return std::move(done).error();
  }
  trace.fingerprint = fingerprint(trace);
  return trace;
}

}  // namespace stowage::simulator
