#include "simulator/step/recomputed_order.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "simulator/step/grouped_rows.h"

namespace stowage::simulator {
namespace {

constexpr std::int32_t kForever = std::numeric_limits<std::int32_t>::max();

Nanoseconds gap_at(const Events& events, std::size_t event) {
  return event > 0 ? events.time[event] - events.time[event - 1] : events.time[event];
}

}  // namespace

RecomputedOrder::RecomputedOrder(const Trace& recording, const std::vector<Segment>& segments,
                                 const std::vector<SavedId>& gone)
    : trace_(recording),
      segments_(segments),
      runs_(segments.size()),
      unpacks_of_(unpacks_by_saved(recording)),
      saved_of_(saved_by_storage(recording)),
      used_by_(uses_by_storage(recording)),
      spans_(recording),
      casts_(recording) {
  is_given_up_.assign(trace_.saved.size(), false);
  is_gone_.assign(trace_.saved.size(), false);
  for (const SavedId each : gone) is_gone_[each.index()] = true;
  for (const Segment& segment : segments_) {
    for (const SavedId each : segment.saved) is_given_up_[each.index()] = true;
  }
  std::vector<std::pair<std::size_t, std::int32_t>> given;
  std::vector<std::pair<std::size_t, std::int32_t>> captured;
  for (std::size_t j = 0; j < segments_.size(); ++j) {
    const auto run = static_cast<std::int32_t>(j);
    for (const Segment::Input& input : segments_[j].inputs) {
      const TensorId tensor = input.tensor;
      const StorageId of = tensor.valid() ? trace_.tensors.storage[tensor.index()] : StorageId();
      if (of.valid()) given.emplace_back(of.index(), run);
    }
    for (const StorageId storage : segments_[j].captured)
      captured.emplace_back(storage.index(), run);
  }
  find_readers();
  given_to_ = {trace_.storages.size(), given};
  captured_by_ = {trace_.storages.size(), captured};
  order_items();
  find_deaths();
  merge_frees();
}

void RecomputedOrder::find_readers() {
  for (std::size_t j = 0; j < segments_.size(); ++j) {
    for (const auto& [begin, end] : segments_[j].inner_runs) {
      reads_from_.resize(trace_.events.size(), -1);
      std::fill(reads_from_.begin() + begin.value, reads_from_.begin() + end.value + 1,
                static_cast<std::int32_t>(j));
    }
  }
}

// A run that reads what this one made saves it.
bool RecomputedOrder::reads_again(SavedId saved, std::int32_t run) const {
  const EventId made = trace_.storages.alloc_event[trace_.saved.storage[saved.index()].index()];
  return run >= 0 && reads_from(trace_.saved.event[saved.index()]) == run && made.valid() &&
         segments_[static_cast<std::size_t>(run)].has(made);
}

void RecomputedOrder::order_items() {
  const Events& events = trace_.events;
  at_.assign(events.size(), -1);
  std::vector<std::pair<EventId, std::int32_t>> triggers;
  for (std::size_t j = 0; j < segments_.size(); ++j) {
    triggers.emplace_back(segments_[j].runs_at, static_cast<std::int32_t>(j));
  }
  std::sort(triggers.begin(), triggers.end());
  std::vector<std::tuple<EventId, std::int32_t, std::int32_t>> inputs;  // event, segment, input
  for (std::size_t j = 0; j < segments_.size(); ++j) {
    const std::vector<Segment::Input>& given = segments_[j].inputs;
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (!given[k].tensor.valid()) continue;
      inputs.emplace_back(given[k].event, static_cast<std::int32_t>(j),
                          static_cast<std::int32_t>(k));
    }
  }
  std::sort(inputs.begin(), inputs.end());
  std::size_t next_trigger = 0;
  auto next_input = inputs.begin();
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::free) continue;
    const EventId event(e);
    const std::size_t first = next_trigger;
    for (; next_trigger < triggers.size() && triggers[next_trigger].first == event;
         ++next_trigger) {
      add_run(triggers[next_trigger].second, next_trigger == first ? gap_at(events, e) : 0);
    }
    add_recorded(event);
    if (next_trigger > first) items_.back().gap = 0;  // it is ahead of the run
    for (; next_input != inputs.end() && std::get<0>(*next_input) == event; ++next_input) {
      const auto& [at, segment, input] = *next_input;
      items_.push_back({.kind = EventKind::pack, .from = {}, .segment = segment, .input = input});
    }
  }
}

void RecomputedOrder::add_recorded(EventId event) {
  at_[event.index()] = static_cast<std::int32_t>(items_.size());
  items_.push_back({.kind = trace_.events.kind[event.index()],
                    .from = event,
                    .gap = gap_at(trace_.events, event.index())});
}

void RecomputedOrder::add_made(std::int32_t run, EventKind kind, LayerId layer) {
  items_.push_back({.kind = kind, .from = {}, .run = run, .layer = layer});
}

void RecomputedOrder::add_again(std::int32_t run, EventId event, Nanoseconds gap) {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  if (segment.has(event)) {
    runs_[static_cast<std::size_t>(run)]
        .again[static_cast<std::size_t>(event.value - segment.first.value)] =
        static_cast<std::int32_t>(items_.size());
  }
  items_.push_back(
      {.kind = trace_.events.kind[event.index()], .from = event, .run = run, .gap = gap});
}

void RecomputedOrder::add_run(std::int32_t run, Nanoseconds gap) {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  Run& to = runs_[static_cast<std::size_t>(run)];
  to.again.assign(static_cast<std::size_t>(segment.end.value - segment.first.value), -1);
  add_made(run, EventKind::recompute_begin, segment.layer);
  items_.back().gap = gap;
  if (!segment.is_chain()) add_again(run, segment.first, 0);
  for (std::size_t k = 0; k < segment.inputs.size(); ++k) {
    if (!segment.inputs[k].tensor.valid()) continue;
    add_made(run, EventKind::unpack, segment.layer);
    items_.back().input = static_cast<std::int32_t>(k);
  }
  segment.is_chain() ? add_chain_again(run) : add_layers_again(run);
  add_made(run, EventKind::recompute_end, segment.layer);
}

void RecomputedOrder::add_layers_again(std::int32_t run) {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  const Events& events = trace_.events;
  Run& to = runs_[static_cast<std::size_t>(run)];
  std::vector<LayerId> open = {segment.layer};
  EventId layer_begin = segment.first;
  const EventId stop = trace_.saved.event[segment.last_needed.index()];
  EventId before = segment.first;
  for (EventId e(segment.first.value + 1); e <= stop; ++e.value) {
    const EventKind kind = events.kind[e.index()];
    if (kind == EventKind::free) continue;
    if (kind == EventKind::layer_forward_begin) {
      if (open.empty()) layer_begin = e;
      open.emplace_back(events.ref[e.index()]);
    }
    if (kind == EventKind::layer_forward_end) {
      open.pop_back();
      if (open.empty()) to.layers.emplace_back(layer_begin, e);
    }
    add_again(run, e, events.time[e.index()] - events.time[before.index()]);
    before = e;
  }
  for (OpId op = events.op[stop.index()]; op.valid(); op = trace_.ops.parent[op.index()]) {
    const EventId end = spans_.end(op);
    if (end.valid() && end >= segment.end) break;  // the segment lies in it
    to.open.emplace_back(op, static_cast<std::int32_t>(items_.size()) - 1);
    if (end.valid() && end > stop) add_again(run, end, 0);
  }
  to.stop = static_cast<std::int32_t>(items_.size()) - 1;
  for (; !open.empty(); open.pop_back()) {
    add_made(run, EventKind::layer_forward_end, open.back());
  }
  to.end = static_cast<std::int32_t>(items_.size()) - 1;
}

// Below autograd nothing is saved inside of an op; behind it, what it made is given to whoever has
// given it up. The gap ahead of an op is the executor's, not the model's.
void RecomputedOrder::add_chain_again(std::int32_t run) {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  const Events& events = trace_.events;
  for (const OpId op : segment.ops) {
    EventId before = spans_.begin(op);
    for (EventId e = before; e <= spans_.end(op); ++e.value) {
      const EventKind kind = events.kind[e.index()];
      if (kind == EventKind::free || kind == EventKind::pack) continue;
      add_again(run, e, events.time[e.index()] - events.time[before.index()]);
      before = e;
    }
    for (std::size_t k = 0; k < segment.saved.size(); ++k) {
      if (segment.made_by[k] != op) continue;
      add_again(run, trace_.saved.event[segment.saved[k].index()], 0);
    }
  }
  runs_[static_cast<std::size_t>(run)].end = static_cast<std::int32_t>(items_.size()) - 1;
}

std::int32_t RecomputedOrder::before(EventId event) const {
  while (at_[event.index()] < 0) --event.value;
  return at_[event.index()];
}

std::int32_t RecomputedOrder::position_released(UnpackId unpack) const {
  const EventId released = trace_.unpacks.released_event[unpack.index()];
  return released.valid() ? before(released) : kForever;
}

std::int32_t RecomputedOrder::last_release(SavedId saved) const {
  std::int32_t last = -1;
  for (const UnpackId unpack : unpacks_of_[saved.index()]) {
    last = std::max(last, position_released(unpack));
  }
  return last;
}

// By what it is given and what it then saves of that.
std::int32_t RecomputedOrder::held_by_run(std::int32_t run, StorageId storage) const {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  std::int32_t last = runs_[static_cast<std::size_t>(run)].end;
  for (const SavedId saved : saved_of_[storage.index()]) {
    if (segment.saves(saved)) last = std::max(last, last_release(saved));
  }
  return last;
}

// Within the op that makes it, or as long as the chain reads it or backward has it.
std::int32_t RecomputedOrder::death_of_chain(std::int32_t run, StorageId storage) const {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  const Run& of = runs_[static_cast<std::size_t>(run)];
  const auto again = [&](EventId event) {
    return of.again[static_cast<std::size_t>(event.value - segment.first.value)];
  };
  const OpId op = spans_.primitive(trace_.storages.alloc_op[storage.index()]);
  const EventId end = spans_.end(op);
  const EventId natural = trace_.storages.natural_free_event[storage.index()];
  EventId at = natural.valid() && natural < end ? natural : end;
  while (again(at) < 0) --at.value;
  std::int32_t last = again(at);
  for (const std::uint32_t use : used_by_[storage.index()]) {
    const OpId reader = trace_.uses.op[use];
    if (!std::binary_search(segment.ops.begin(), segment.ops.end(), reader)) continue;
    if (reader > op) last = std::max(last, again(spans_.end(reader)));
  }
  for (const SavedId saved : saved_of_[storage.index()]) {
    if (segment.saves(saved)) last = std::max(last, last_release(saved));
  }
  return last;
}

std::int32_t RecomputedOrder::death_again(std::int32_t run, StorageId storage) const {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  if (segment.is_chain()) return death_of_chain(run, storage);
  const Run& of = runs_[static_cast<std::size_t>(run)];
  const EventId natural = trace_.storages.natural_free_event[storage.index()];
  const EventId stop = trace_.saved.event[segment.last_needed.index()];
  std::int32_t last = -1;
  if (natural.valid() && natural < stop) {
    const auto back_to_no_free = [&](EventId event) {
      while (trace_.events.kind[event.index()] == EventKind::free) --event.value;
      return event;
    };
    EventId at = back_to_no_free(natural);
    // The model may hold what it gives to a layer until that has returned; the run does not.
    const auto ended = std::find_if(of.layers.begin(), of.layers.end(),
                                    [&](const auto& layer) { return layer.second == at; });
    const EventId made = trace_.storages.alloc_event[storage.index()];
    if (ended != of.layers.end() && made < ended->first)
      at = back_to_no_free(EventId(at.value - 1));
    last = of.again[static_cast<std::size_t>(at.value - segment.first.value)];
  } else {  // gone when the run stops: with the innermost op around that that made it, or behind
    last = of.stop;
    // But what autocast keeps, it keeps until all ops are over.
    OpId op =
        casts_.held_until(storage).valid() ? OpId() : trace_.storages.alloc_op[storage.index()];
    for (bool is_found = false; op.valid() && !is_found; op = trace_.ops.parent[op.index()]) {
      for (const auto& [around, position] : of.open) {
        if (around == op) last = position, is_found = true;
      }
    }
  }
  for (const SavedId saved : saved_of_[storage.index()]) {
    if (!segment.saves(saved) && !reads_again(saved, run)) continue;
    last = std::max(last, last_release(saved));
  }
  return last;
}

void RecomputedOrder::find_death(StorageId storage) {
  const EventId free = trace_.storages.free_event[storage.index()];
  const EventId natural = trace_.storages.natural_free_event[storage.index()];
  const std::int32_t recorded = free.valid() ? before(free) : kForever;
  std::int32_t own = natural.valid() ? before(natural) : kForever;
  std::int32_t death = recorded;
  bool is_given_up = false;
  std::int32_t others = -1;  // of what is saved outside of segments
  std::int32_t inside = -1;  // and in them
  for (const SavedId saved : saved_of_[storage.index()]) {
    const bool is_inside = is_given_up_[saved.index()] ||
                           reads_again(saved, reads_from(trace_.saved.event[saved.index()]));
    if (is_gone_[saved.index()] && !is_inside) continue;
    is_given_up = is_given_up || is_inside;
    const bool is_asked_for = !unpacks_of_[saved.index()].empty();
    std::int32_t& last = is_inside ? inside : others;
    if (is_asked_for || is_inside) last = std::max(last, last_release(saved));
    if (!is_asked_for && !is_inside) last = std::max(last, recorded);
  }
  // Autograd has it until the node of its last use is done, which may go on behind that use.
  if (others > inside) others = std::max(others, recorded);
  const bool is_held =
      !given_to_[storage.index()].empty() || !captured_by_[storage.index()].empty();
  if (is_given_up || is_held) {
    for (const std::int32_t run : captured_by_[storage.index()]) {
      own = std::max(own, held_by_run(run, storage));
    }
    death = std::max(own, others);
    if (!is_given_up) death = std::max(death, recorded);
    for (const std::int32_t run : given_to_[storage.index()]) {
      death = std::max(death, held_by_run(run, storage));
    }
  }
  // What was there before the step and stays is nobody's to free.
  const bool stays = !trace_.storages.alloc_event[storage.index()].valid() && !free.valid();
  is_moved_[storage.index()] = !stays && death != recorded;
  storages_.push_back({storage, -1});
  death_.push_back(stays || death == kForever ? -1 : death);
  natural_death_.push_back(stays || own == kForever ? -1 : own);
}

void RecomputedOrder::find_deaths() {
  is_moved_.assign(trace_.storages.size(), false);
  for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
    if (!trace_.storages.alloc_event[s].valid()) find_death(StorageId(s));
  }
  for (const OrderedEvent& item : items_) {
    if (item.kind != EventKind::alloc) continue;
    const StorageId storage(trace_.events.ref[item.from.index()]);
    if (item.run < 0) {
      find_death(storage);
      continue;
    }
    const std::int32_t death = death_again(item.run, storage);
    storages_.push_back({storage, item.run});
    death_.push_back(death == kForever ? -1 : death);
    natural_death_.push_back(death_.back());
  }
}

void RecomputedOrder::merge_frees() {
  const Events& recorded = trace_.events;
  // (position, recorded free that stays where it is or none, row)
  std::vector<std::tuple<std::int32_t, EventId, std::size_t>> frees;
  for (std::size_t row = 0; row < storages_.size(); ++row) {
    const auto [storage, run] = storages_[row];
    const EventId free = trace_.storages.free_event[storage.index()];
    const bool is_moved = run >= 0 || is_moved_[storage.index()];
    if (run < 0 && is_moved && free.valid()) {
      items_[static_cast<std::size_t>(before(free)) + 1].gap += gap_at(recorded, free.index());
    }
    if (death_[row] >= 0) frees.emplace_back(death_[row], is_moved ? EventId() : free, row);
  }
  std::sort(frees.begin(), frees.end());
  auto next = frees.begin();
  for (std::size_t p = 0; p < items_.size(); ++p) {
    final_.push_back(static_cast<std::int32_t>(events_.size()));
    events_.push_back(items_[p]);
    for (; next != frees.end() && std::get<0>(*next) == static_cast<std::int32_t>(p); ++next) {
      const auto& [position, free, row] = *next;
      events_.push_back({.kind = EventKind::free,
                         .from = free,
                         .run = items_[p].run,
                         .gap = free.valid() ? gap_at(recorded, free.index()) : 0,
                         .storage = storages_[row]});
    }
  }
  natural_.reserve(natural_death_.size());
  for (const std::int32_t death : natural_death_) natural_.push_back(final_at(death));
}

std::int32_t RecomputedOrder::at_or_before(EventId recorded) const {
  return final_at(before(recorded));
}

std::int32_t RecomputedOrder::again_or_before(std::int32_t run, EventId recorded) const {
  const Segment& segment = segments_[static_cast<std::size_t>(run)];
  if (!segment.has(recorded)) return -1;
  if (segment.is_chain()) {  // between its ops nothing of it runs
    const auto behind =
        std::upper_bound(segment.ops.begin(), segment.ops.end(), recorded,
                         [&](EventId event, OpId op) { return event < spans_.begin(op); });
    if (behind == segment.ops.begin() || spans_.end(*std::prev(behind)) <= recorded) {
      return -1;
    }
  } else if (recorded >= trace_.saved.event[segment.last_needed.index()]) {
    return -1;
  }
  const std::vector<std::int32_t>& again = runs_[static_cast<std::size_t>(run)].again;
  auto row = static_cast<std::size_t>(recorded.value - segment.first.value);
  while (again[row] < 0) --row;
  return final_at(again[row]);
}

std::int32_t RecomputedOrder::released(UnpackId recorded) const {
  const std::int32_t position = position_released(recorded);
  return position == kForever ? -1 : final_at(position);
}

std::int32_t RecomputedOrder::input_released(std::int32_t run, std::int32_t input) const {
  const TensorId tensor =
      segments_[static_cast<std::size_t>(run)].inputs[static_cast<std::size_t>(input)].tensor;
  const StorageId storage = trace_.tensors.storage[tensor.index()];
  const std::int32_t position =
      storage.valid() ? held_by_run(run, storage) : runs_[static_cast<std::size_t>(run)].end;
  return position == kForever ? -1 : final_at(position);
}

}  // namespace stowage::simulator
