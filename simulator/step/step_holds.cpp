#include "simulator/step/step_holds.h"

#include <algorithm>
#include <span>

namespace stowage::simulator {
namespace {

// The last event at or ahead of `event` that is no free, at least `least`.
EventId kept(const Events& events, EventId event, EventId least) {
  while (event.valid() && events.kind[event.index()] == EventKind::free) --event.value;
  return std::max({event, least, EventId(std::size_t{0})});
}

void find_unpacks(const StepLayout& layout, Trace& trace) {
  for (const Placement& placement : layout.placements()) {
    const StepSource& source = layout.source_of(placement);
    const std::size_t table = index_of(RowTable::unpacks);
    for (std::int32_t i = 0; i < placement.count[table]; ++i) {
      const std::size_t from = source.rows->row(RowTable::unpacks, placement.from[table] + i);
      const auto row = static_cast<std::size_t>(placement.to[table] + i);
      const EventId released = source.trace->unpacks.released_event[from];
      if (!released.valid()) continue;
      const EventId last = layout.event_at_or_before(placement.group, released);
      trace.unpacks.released_event[row] = kept(trace.events, last, trace.unpacks.event[row]);
    }
  }
}

EventId natural_of(const StepLayout& layout, std::int32_t group, StorageId storage) {
  return layout.source_of_group(group).trace->storages.natural_free_event[storage.index()];
}

// Of a recorded storage that those of other passes stand for: the latest of what the recording and
// their passes say, as far as that event is in the step.
void hold_shared(const StepLayout& layout, const StepStorages& storages,
                 std::span<const StepStorages::Alias> aliases, Trace& trace) {
  const StorageId recorded = aliases.front().recorded;
  const StorageId row = storages.recorded(recorded);
  if (!row.valid()) return;
  EventId& natural = trace.storages.natural_free_event[row.index()];
  natural = EventId();
  const EventId then = natural_of(layout, 0, recorded);
  if (!then.valid()) return;
  EventId last = layout.event(0, then);
  for (const StepStorages::Alias& alias : aliases) {
    const EventId there = natural_of(layout, alias.group, alias.storage);
    if (there.valid()) last = std::max(last, layout.event(alias.group, there));
  }
  if (!last.valid()) last = layout.event_at_or_before(0, then);
  natural = kept(trace.events, last, trace.storages.alloc_event[row.index()]);
}

}  // namespace

Origin<StorageId> origin_of(const StepLayout& layout, StorageId storage) {
  if (storage.index() < layout.existing().size()) return {0, layout.existing()[storage.index()]};
  const Placement& placement = layout.at(RowTable::storages, storage.value);
  const std::size_t table = index_of(RowTable::storages);
  const std::int32_t position = placement.from[table] + storage.value - placement.to[table];
  const std::size_t row = layout.source_of(placement).rows->row(RowTable::storages, position);
  return {layout.groups()[static_cast<std::size_t>(placement.group)].source, StorageId(row)};
}

void find_holds(const StepLayout& layout, const StepStorages& storages, Trace& trace) {
  find_unpacks(layout, trace);
  const auto set = [&](std::size_t row, std::int32_t group, EventId natural) {
    const EventId last = layout.event_at_or_before(group, natural);
    trace.storages.natural_free_event[row] =
        kept(trace.events, last, trace.storages.alloc_event[row]);
  };
  for (std::size_t s = 0; s < layout.existing().size(); ++s) {
    if (const EventId natural = natural_of(layout, 0, layout.existing()[s]); natural.valid()) {
      set(s, 0, natural);
    }
  }
  for (const Placement& placement : layout.placements()) {
    const std::size_t table = index_of(RowTable::storages);
    for (std::int32_t i = 0; i < placement.count[table]; ++i) {
      const std::size_t from =
          layout.source_of(placement).rows->row(RowTable::storages, placement.from[table] + i);
      const EventId natural = natural_of(layout, placement.group, StorageId(from));
      if (!natural.valid()) continue;
      set(static_cast<std::size_t>(placement.to[table] + i), placement.group, natural);
    }
  }
  const auto& aliases = storages.aliases();
  for (std::size_t first = 0; first < aliases.size();) {
    std::size_t end = first + 1;
    while (end < aliases.size() && aliases[end].recorded == aliases[first].recorded) ++end;
    hold_shared(layout, storages, {aliases.data() + first, aliases.data() + end}, trace);
    first = end;
  }
}

}  // namespace stowage::simulator
