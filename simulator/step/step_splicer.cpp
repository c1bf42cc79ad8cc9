#include "simulator/step/step_splicer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "simulator/step/step_composer.h"
#include "simulator/step/step_holds.h"
#include "traces/columns.h"

namespace stowage::simulator {
namespace {

template <class F>
void visit_row_tables(Trace& trace, F&& f) {
  f(RowTable::ops, trace.ops);
  f(RowTable::gpu, trace.gpu);
  f(RowTable::syncs, trace.syncs);
  f(RowTable::storages, trace.storages);
  f(RowTable::tensors, trace.tensors);
  f(RowTable::uses, trace.uses);
  f(RowTable::saved, trace.saved);
  f(RowTable::unpacks, trace.unpacks);
}

// The table that the `ref` of an event names; none for layers, which do not move.
std::optional<RowTable> table_of(EventKind kind) {
  switch (kind) {
    case EventKind::alloc:
    case EventKind::free:
    case EventKind::gradient_accumulated:
    case EventKind::parameter_update_begin:
    case EventKind::parameter_update_end:
      return RowTable::storages;
    case EventKind::pack:
      return RowTable::saved;
    case EventKind::unpack:
      return RowTable::unpacks;
    case EventKind::op_begin:
    case EventKind::op_end:
      return RowTable::ops;
    default:
      return std::nullopt;
  }
}

RowRegions regions_of(const std::vector<std::pair<std::int32_t, std::int32_t>>& before,
                      const std::vector<std::pair<std::int32_t, std::int32_t>>& now,
                      std::int32_t rows_before, std::int32_t rows_now) {
  RowRegions made{{}, rows_before, rows_now};
  std::int32_t from = 0;
  std::int32_t to = 0;
  for (std::size_t i = 0; i <= before.size(); ++i) {
    const std::int32_t end = i < before.size() ? before[i].first : rows_before;
    made.regions.push_back({from, to, end - from});
    if (i == before.size()) break;
    from = before[i].second;
    to = now[i].second;
  }
  return made;
}

template <class T>
void shift(std::vector<T>& column, const RowRegion& region, Nanoseconds by) {
  const auto first = column.begin() + region.to;
  for (auto at = first; at != first + region.count; ++at) *at += by;
}

}  // namespace

Status StepSplicer::flip(std::size_t row) {
  const std::vector<Bounds> before = bounds(row);
  StepRegions sizes;
  sizes.events.before = static_cast<std::int32_t>(layout_.event_count());
  for (std::size_t t = 0; t < kRowTables; ++t) {
    sizes.tables[t].before = static_cast<std::int32_t>(layout_.row_count(static_cast<RowTable>(t)));
  }
  step_.on_[row] = !step_.on_[row];
  step_.lay_out();
  if (Status found = step_.storages_.find(); !found) return found;
  regions_ = std::move(sizes);
  regions_ = regions(before, bounds(row));
  splice_tables();
  map_ids();
  map_refs();
  StepWriter writer(layout_, step_.storages_, *step_.names_, trace_);
  shift_times();
  write_new(writer);
  write_naming(row, writer);
  write_gone(writer);
  write_gap_rows(writer);
  for (const std::int32_t event : frees_) free_at(event, writer);
  if (!writer.error()) check_frees(writer);
  if (writer.error()) return *writer.error();
  write_phases(layout_, trace_);
  write_device_starts(layout_, writer);
  find_changed_holds(row);
  number_saved_storages(trace_);
  write_setup(layout_, step_.storages_, trace_);
  step_.index_ = std::make_unique<StepIndex>(Step(*step_.recording_, step_.composed_));
  return Unit{};
}

std::vector<StepSplicer::Bounds> StepSplicer::bounds(std::size_t row) const {
  std::vector<Bounds> made;
  const auto& placements = layout_.placements();
  for (std::size_t r = 0; r < step_.prepared_[row].size(); ++r) {
    Bounds at;
    if (step_.on_[row]) {
      // Behind the last piece there is always one of the recording: the step's end.
      const Placement& first = placements[step_.ranges_[row][r].first];
      const Placement& end = placements[step_.ranges_[row][r].end];
      at = {first.at.value, end.at.value, first.to, end.to};
    } else {
      const StructuredStep::Prepared& prepared = step_.prepared_[row][r];
      const std::int32_t found = layout_.placement_of(0, prepared.first.event);
      const Placement& placement = placements[static_cast<std::size_t>(found)];
      const std::int32_t behind = placement.at.value - placement.first.value;
      at.first_event = prepared.first.event.value + behind;
      at.end_event = prepared.end.event.value + behind;
      for (std::size_t t = 0; t < kRowTables; ++t) {
        at.first[t] = placement.to[t] + prepared.first.rows[t] - placement.from[t];
        at.end[t] = placement.to[t] + prepared.end.rows[t] - placement.from[t];
      }
    }
    made.push_back(at);
  }
  return made;
}

StepRegions StepSplicer::regions(const std::vector<Bounds>& before,
                                 const std::vector<Bounds>& now) const {
  StepRegions made;
  std::vector<std::pair<std::int32_t, std::int32_t>> was;
  std::vector<std::pair<std::int32_t, std::int32_t>> is;
  for (std::size_t i = 0; i < before.size(); ++i) {
    was.emplace_back(before[i].first_event, before[i].end_event);
    is.emplace_back(now[i].first_event, now[i].end_event);
  }
  made.events =
      regions_of(was, is, regions_.events.before, static_cast<std::int32_t>(layout_.event_count()));
  for (std::size_t t = 0; t < kRowTables; ++t) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      was[i] = {before[i].first[t], before[i].end[t]};
      is[i] = {now[i].first[t], now[i].end[t]};
    }
    made.tables[t] =
        regions_of(was, is, regions_.tables[t].before,
                   static_cast<std::int32_t>(layout_.row_count(static_cast<RowTable>(t))));
  }
  return made;
}

void StepSplicer::splice_tables() {
  visit_columns(trace_.events,
                [&](const char*, auto& column, Rule) { regions_.events.splice(column); });
  visit_row_tables(trace_, [&](RowTable table, auto& rows) {
    visit_columns(rows,
                  [&](const char*, auto& column, Rule) { regions_.of(table).splice(column); });
  });
}

// Ids in rows that stay. What names a row that is gone is noted.
template <class IdT>
void StepSplicer::map_column(RowTable table, std::vector<IdT>& column,
                             const std::vector<std::int32_t>& map) {
  for (const RowRegion& region : regions_.of(table).regions) {
    for (std::int32_t row = region.to; row < region.to + region.count; ++row) {
      IdT& id = column[static_cast<std::size_t>(row)];
      if (!id.valid()) continue;
      id.value = map[id.index()];
      if (id.value == RowRegions::kGone) gone_.push_back({table, row});
    }
  }
}

void StepSplicer::map_ids() {
  const std::vector<std::int32_t> events = regions_.events.map();
  const std::vector<std::int32_t> ops = regions_.of(RowTable::ops).map();
  const std::vector<std::int32_t> tensors = regions_.of(RowTable::tensors).map();
  const std::vector<std::int32_t> storages = regions_.of(RowTable::storages).map();
  const std::vector<std::int32_t> saved = regions_.of(RowTable::saved).map();
  visit_row_tables(trace_, [&](RowTable table, auto& rows) {
    visit_columns(rows, [&](const char*, auto& column, Rule) {
      using IdT = typename std::remove_cvref_t<decltype(column)>::value_type;
      if constexpr (std::is_same_v<IdT, EventId>) map_column(table, column, events);
      if constexpr (std::is_same_v<IdT, OpId>) map_column(table, column, ops);
      if constexpr (std::is_same_v<IdT, TensorId>) map_column(table, column, tensors);
      if constexpr (std::is_same_v<IdT, StorageId>) map_column(table, column, storages);
      if constexpr (std::is_same_v<IdT, SavedId>) map_column(table, column, saved);
    });
  });
}

void StepSplicer::map_refs() {
  std::array<std::vector<std::int32_t>, kRowTables> maps;
  for (const RowTable table :
       {RowTable::ops, RowTable::storages, RowTable::saved, RowTable::unpacks}) {
    maps[index_of(table)] = regions_.of(table).map();
  }
  const std::vector<std::int32_t>& ops = maps[index_of(RowTable::ops)];
  for (const RowRegion& region : regions_.events.regions) {
    for (std::int32_t row = region.to; row < region.to + region.count; ++row) {
      const auto e = static_cast<std::size_t>(row);
      OpId& op = trace_.events.op[e];
      if (op.valid()) op.value = ops[op.index()];
      bool is_gone = op.value == RowRegions::kGone;
      if (const auto table = table_of(trace_.events.kind[e])) {
        std::int32_t& ref = trace_.events.ref[e];
        ref = maps[index_of(*table)][static_cast<std::size_t>(ref)];
        is_gone = is_gone || ref == RowRegions::kGone;
      }
      if (is_gone) gone_refs_.push_back(row);
    }
  }
}

// The time of an event from that of the one ahead of it.
Nanoseconds StepSplicer::time_at(std::int32_t event) const {
  const Placement& placement = layout_.at(EventId(event));
  const auto& source = layout_.source_of(placement).trace->events.time;
  const auto e = static_cast<std::size_t>(placement.first.value + event - placement.at.value);
  return trace_.events.time[static_cast<std::size_t>(event) - 1] + source[e] - source[e - 1];
}

// Regions in order, and what is new between them: each goes on from the event ahead of it. Both
// ends of the step stay, so there is one.
void StepSplicer::shift_times() {
  std::vector<Nanoseconds>& time = trace_.events.time;
  const auto& regions = regions_.events.regions;
  for (std::size_t r = 1; r < regions.size(); ++r) {
    for (std::int32_t e = regions[r - 1].to + regions[r - 1].count; e < regions[r].to; ++e) {
      time[static_cast<std::size_t>(e)] = time_at(e);
    }
    if (regions[r].count == 0) continue;
    const std::int32_t first = regions[r].to;
    const Nanoseconds by = time_at(first) - time[static_cast<std::size_t>(first)];
    if (by == 0) continue;
    shift(time, regions[r], by);
    shift(trace_.ops.start, regions_.of(RowTable::ops).regions[r], by);
    shift(trace_.gpu.launch_start, regions_.of(RowTable::gpu).regions[r], by);
  }
}

// New pieces; where they are of the recording, the part of it that came back.
void StepSplicer::write_new(StepWriter& writer) {
  const auto& events = regions_.events.regions;
  for (std::size_t r = 0; r + 1 < events.size(); ++r) {
    const std::int32_t end_event = events[r + 1].to;
    for (std::int32_t e = events[r].to + events[r].count; e < end_event; ++e) {
      const Placement& placement = layout_.at(EventId(e));
      writer.event(placement, EventId(placement.first.value + e - placement.at.value));
      if (trace_.events.kind[static_cast<std::size_t>(e)] == EventKind::free) frees_.push_back(e);
    }
    for (std::size_t t = 0; t < kRowTables; ++t) {
      const auto table = static_cast<RowTable>(t);
      const auto& regions = regions_.tables[t].regions;
      for (std::int32_t row = regions[r].to + regions[r].count; row < regions[r + 1].to; ++row) {
        gone_.push_back({table, row});
        if (table == RowTable::storages) {
          const Placement& placement = layout_.at(table, row);
          const std::int32_t position = placement.from[t] + row - placement.to[t];
          writer.row(table, placement, layout_.source_of(placement).rows->row(table, position));
          storages_.push_back(row);
        }
      }
    }
  }
}

void StepSplicer::write_naming(std::size_t row, StepWriter& writer) {
  const StructuredStep::Naming& naming = step_.naming_[row];
  const PassRows& rows = *layout_.sources().front().rows;
  const auto placement_of = [&](EventId home) -> const Placement* {
    const std::int32_t found = layout_.placement_of(0, home);
    return found < 0 ? nullptr : &layout_.placements()[static_cast<std::size_t>(found)];
  };
  for (const EventId event : naming.events) {
    if (const Placement* placement = placement_of(event)) {
      gone_refs_.push_back(placement->at.value + event.value - placement->first.value);
    }
  }
  for (std::size_t t = 0; t < kRowTables; ++t) {
    const auto table = static_cast<RowTable>(t);
    for (const std::uint32_t each : naming.rows[t]) {
      const Placement* placement = placement_of(rows.home(table, each));
      if (placement == nullptr) continue;
      if (table == RowTable::storages) {
        writer.storage_op(*placement, each);
      } else {
        writer.row(table, *placement, each);
        if (table == RowTable::unpacks) unpacks_.push_back(layout_.row(table, 0, each));
      }
    }
  }
}

// Rows that named one that is gone, or that are new.
void StepSplicer::write_gone(StepWriter& writer) {
  for (const std::int32_t e : gone_refs_) {
    const Placement& placement = layout_.at(EventId(e));
    writer.event(placement, EventId(placement.first.value + e - placement.at.value));
    if (trace_.events.kind[static_cast<std::size_t>(e)] == EventKind::free) frees_.push_back(e);
  }
  for (const auto& [table, row] : gone_) {
    const auto r = static_cast<std::size_t>(row);
    if (table == RowTable::storages) {
      EventId& free = trace_.storages.free_event[r];
      if (free.value == RowRegions::kGone) {
        free = EventId();
        storages_.push_back(row);
      }
      holds_.push_back(row);
      if (r < layout_.existing().size()) continue;
    }
    const Placement& placement = layout_.at(table, row);
    const std::size_t t = index_of(table);
    const std::int32_t offset = row - placement.to[t];
    if (offset >= placement.count[t]) {
      writer.borrowed(placement);
      continue;
    }
    const std::size_t of =
        layout_.source_of(placement).rows->row(table, placement.from[t] + offset);
    if (table == RowTable::storages) {
      writer.storage_op(placement, of);
      continue;
    }
    writer.row(table, placement, of);
    if (table == RowTable::unpacks) unpacks_.push_back(row);
  }
}

// Device rows and syncs in the gap behind what was exchanged stand behind another event.
void StepSplicer::write_gap_rows(StepWriter& writer) {
  for (std::size_t r = 1; r < regions_.events.regions.size(); ++r) {
    if (regions_.events.regions[r].count == 0) continue;
    const EventId at(regions_.events.regions[r].to);
    const Placement& placement = layout_.at(at);
    const PassRows& rows = *layout_.source_of(placement).rows;
    const EventId home(placement.first.value + at.value - placement.at.value);
    for (const RowTable table : {RowTable::gpu, RowTable::syncs}) {
      const std::int32_t end = rows.first_at(table, EventId(home.value + 1));
      for (std::int32_t p = rows.first_at(table, home); p < end; ++p) {
        writer.row(table, placement, rows.row(table, p));
      }
    }
  }
}

void StepSplicer::free_at(std::int32_t event, StepWriter& writer) {
  const std::int32_t ref = trace_.events.ref[static_cast<std::size_t>(event)];
  if (ref < 0) return;  // an error, noted by the writer
  EventId& free = trace_.storages.free_event[static_cast<std::size_t>(ref)];
  if (free.valid() && free.value != event) {
    writer.fail("event " + std::to_string(event) + " of the step frees a storage again");
  }
  free = EventId(event);
}

void StepSplicer::check_frees(StepWriter& writer) {
  for (const std::int32_t row : storages_) {
    if (trace_.storages.free_event[static_cast<std::size_t>(row)].valid()) continue;
    const auto [source, of] = origin_of(layout_, StorageId(row));
    const StepSource& from = layout_.sources()[static_cast<std::size_t>(source)];
    if (!from.trace->storages.free_event[of.index()].valid()) continue;
    writer.fail("storage " + std::to_string(of.value) + " of pass '" + from.name +
                "' is freed there, and by no piece of the step");
  }
}

// Deaths in a span that is replaced, or was; and of what this template's pieces share.
void StepSplicer::find_changed_holds(std::size_t row) {
  const auto storage = [&](StorageId of) {
    if (of.valid()) find_hold(layout_, step_.storages_, of, trace_);
  };
  for (const std::int32_t each : holds_) storage(StorageId(each));
  for (const std::int32_t each : unpacks_) find_hold(layout_, UnpackId(each), trace_);
  for (std::size_t t = 0; t < step_.templates_.size(); ++t) {
    if (!step_.on_[t] && t != row) continue;
    const StructuredStep::Naming& naming = step_.naming_[t];
    for (const StorageId each : naming.storages) storage(step_.storages_.recorded(each));
    for (const UnpackId each : naming.unpacks) {
      const UnpackId at(layout_.row(RowTable::unpacks, 0, each.index()));
      if (at.valid()) find_hold(layout_, at, trace_);
    }
    if (!step_.on_[t]) continue;
    for (const auto& [group, each] : naming.own_storages) {
      storage(step_.storages_.row(group, each));
    }
    for (const auto& [group, each] : naming.own_unpacks) {
      const UnpackId at(layout_.row(RowTable::unpacks, group, each.index()));
      if (at.valid()) find_hold(layout_, at, trace_);
    }
  }
  for (const StructuredStep::Prepared& prepared : step_.prepared_[row]) {
    for (const Placement& placement : prepared.placements) {
      for (const auto& pair : layout_.groups()[static_cast<std::size_t>(placement.group)].same) {
        storage(step_.storages_.recorded(pair.second));
      }
    }
  }
}

}  // namespace stowage::simulator
