#include "simulator/step/step_holds.h"

#include <algorithm>
#include <span>

namespace stowage::simulator {
namespace {

// A row of a group's source.
struct GroupRow {
  std::int32_t group = 0;
  std::size_t row = 0;
};

GroupRow origin_in(const StepLayout& layout, RowTable table, std::int32_t row) {
  const Placement& placement = layout.at(table, row);
  const std::size_t t = index_of(table);
  const std::int32_t position = placement.from[t] + row - placement.to[t];
  return {placement.group, layout.source_of(placement).rows->row(table, position)};
}

GroupRow origin_of_storage(const StepLayout& layout, StorageId storage) {
  if (storage.index() < layout.existing().size()) {
    return {0, layout.existing()[storage.index()].index()};
  }
  return origin_in(layout, RowTable::storages, storage.value);
}

// The last event at or ahead of `event` that is no free, at least `least`.
EventId kept(const Events& events, EventId event, EventId least) {
  while (event.valid() && events.kind[event.index()] == EventKind::free) --event.value;
  return std::max({event, least, EventId(std::size_t{0})});
}

EventId natural_of(const StepLayout& layout, std::int32_t group, StorageId storage) {
  return layout.source_of_group(group).trace->storages.natural_free_event[storage.index()];
}

// Of a recorded storage that those of other passes stand for: the latest of what the recording and
// their passes say, as far as that event is in the step.
EventId shared_death(const StepLayout& layout, StorageId recorded,
                     std::span<const StepStorages::Alias> aliases) {
  const EventId then = natural_of(layout, 0, recorded);
  if (!then.valid()) return {};
  EventId last = layout.event(0, then);
  for (const StepStorages::Alias& alias : aliases) {
    const EventId there = natural_of(layout, alias.group, alias.storage);
    if (there.valid()) last = std::max(last, layout.event(alias.group, there));
  }
  return last.valid() ? last : layout.event_at_or_before(0, then);
}

}  // namespace

Origin<StorageId> origin_of(const StepLayout& layout, StorageId storage) {
  const GroupRow origin = origin_of_storage(layout, storage);
  return {layout.groups()[static_cast<std::size_t>(origin.group)].source, StorageId(origin.row)};
}

void find_hold(const StepLayout& layout, const StepStorages& storages, StorageId row,
               Trace& trace) {
  const GroupRow origin = origin_of_storage(layout, row);
  const StorageId recorded = storages.recorded_of(origin.group, StorageId(origin.row));
  const auto aliases = storages.aliases_of(recorded);
  const bool is_shared = !aliases.empty();
  const std::int32_t group = is_shared ? 0 : origin.group;
  const EventId natural = natural_of(layout, group, is_shared ? recorded : StorageId(origin.row));
  EventId& death = trace.storages.natural_free_event[row.index()];
  death = EventId();
  if (!natural.valid()) return;
  const bool is_freed = trace.storages.free_event[row.index()].valid();
  if (group == 0 && !is_freed && layout.leaves_out(natural)) return;
  const EventId last = is_shared ? shared_death(layout, recorded, aliases)
                                 : layout.event_at_or_before(group, natural);
  death = kept(trace.events, last, trace.storages.alloc_event[row.index()]);
}

void find_hold(const StepLayout& layout, UnpackId row, Trace& trace) {
  const GroupRow origin = origin_in(layout, RowTable::unpacks, row.value);
  const Trace& source = *layout.source_of_group(origin.group).trace;
  const EventId released = source.unpacks.released_event[origin.row];
  EventId& to = trace.unpacks.released_event[row.index()];
  to = EventId();
  if (!released.valid() || (origin.group == 0 && layout.leaves_out(released))) return;
  const EventId last = layout.event_at_or_before(origin.group, released);
  to = kept(trace.events, last, trace.unpacks.event[row.index()]);
}

void find_holds(const StepLayout& layout, const StepStorages& storages, Trace& trace) {
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    find_hold(layout, storages, StorageId(s), trace);
  }
  for (std::size_t u = 0; u < trace.unpacks.size(); ++u) find_hold(layout, UnpackId(u), trace);
}

}  // namespace stowage::simulator
