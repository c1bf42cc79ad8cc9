#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "traces/validate_checks.h"

namespace stowage {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

// Rows that `ref` of a kind may name; -1 for kinds without one.
std::int64_t rows_of_ref(const Trace& trace, EventKind kind) {
  switch (kind) {
    case EventKind::step_begin:
    case EventKind::step_end:
    case EventKind::backward_begin:
    case EventKind::backward_end:
      return -1;
    case EventKind::alloc:
    case EventKind::free:
    case EventKind::gradient_accumulated:
    case EventKind::parameter_update_begin:
    case EventKind::parameter_update_end:
      return static_cast<std::int64_t>(trace.storages.size());
    case EventKind::pack:
      return static_cast<std::int64_t>(trace.saved.size());
    case EventKind::unpack:
      return static_cast<std::int64_t>(trace.unpacks.size());
    case EventKind::layer_forward_begin:
    case EventKind::layer_forward_end:
    case EventKind::layer_backward_begin:
    case EventKind::layer_backward_end:
    case EventKind::recompute_begin:
    case EventKind::recompute_end:
      return static_cast<std::int64_t>(trace.layers.size());
    case EventKind::op_begin:
    case EventKind::op_end:
      return static_cast<std::int64_t>(trace.ops.size());
  }
  return -1;
}

// True when `event` is of `kind` and names `row`.
bool is_event_of(const Trace& trace, EventId event, EventKind kind, std::size_t row) {
  return trace.events.kind[event.index()] == kind &&
         trace.events.ref[event.index()] == static_cast<std::int32_t>(row);
}

std::string not_its_event(EventId event, const char* kind) {
  return "is " + number(event.value) + ", but that event is not its " + kind;
}

// An instant that stands for "died after this event": not a free, not before `first`.
void check_death(const Trace& trace, const std::string& column, std::size_t row, EventId event,
                 EventId first, const char* first_name, Findings& findings) {
  if (!event.valid()) return;
  if (event < first) {
    findings.add(column, row,
                 "is " + number(event.value) + ", before its " + first_name + " event " +
                     number(first.value));
  } else if (trace.events.kind[event.index()] == EventKind::free) {
    findings.add(column, row, "is " + number(event.value) + ", which is a free event");
  }
}

}  // namespace

void check_events(const Trace& trace, Findings& findings) {
  const Events& events = trace.events;
  const std::size_t rows = events.size();
  if (rows < 2) {
    findings.add("/events/n", "is " + std::to_string(rows) + "; a step has at least two events");
    return;
  }
  std::int32_t packs = 0;
  std::int32_t unpacks = 0;
  std::int32_t updated = -1;  // the parameter whose update goes on
  std::vector<std::int32_t> again;
  for (std::size_t i = 0; i < rows; ++i) {
    const EventKind kind = events.kind[i];
    if ((kind == EventKind::step_begin) != (i == 0)) {
      return findings.add("/events/kind", i, "step_begin must be row 0 and only row 0");
    }
    if ((kind == EventKind::step_end) != (i + 1 == rows)) {
      return findings.add("/events/kind", i, "step_end must be the last row and only that one");
    }
    if (i > 0 && events.time[i] < events.time[i - 1]) {
      return findings.add("/events/time", i, "is earlier than the row before it");
    }
    const std::int64_t refs = rows_of_ref(trace, kind);
    const std::int32_t ref = events.ref[i];
    if (refs < 0 ? ref != -1 : (ref < 0 || ref >= refs)) {
      return findings.add("/events/ref", i,
                          refs < 0 ? "is " + number(ref) + ", but " + name_of(kind) + " has none"
                                   : "is " + number(ref) + ", but the table of " + name_of(kind) +
                                         " has " + number(refs) + " rows");
    }
    // One update after the other.
    if (kind == EventKind::parameter_update_begin && std::exchange(updated, ref) >= 0) {
      return findings.add("/events/kind", i, "begins an update inside another one");
    }
    if (kind == EventKind::parameter_update_end && std::exchange(updated, -1) != ref) {
      return findings.add("/events/ref", i, "is not the parameter whose update goes on");
    }
    if (kind == EventKind::step_end && updated >= 0) {
      return findings.add("/events/kind", i, "comes before the end of a parameter's update");
    }
    // Segments that run again may hold others: the innermost ends first.
    if (kind == EventKind::recompute_begin) again.push_back(ref);
    if (kind == EventKind::recompute_end) {
      if (again.empty() || again.back() != ref) {
        return findings.add("/events/ref", i, "is not the segment that runs again");
      }
      again.pop_back();
    }
    if (kind == EventKind::step_end && !again.empty()) {
      return findings.add("/events/kind", i, "comes before the end of a segment that runs again");
    }
    // In order and each once; the other way round is checked with the tables themselves.
    if (kind == EventKind::pack && ref != packs++) {
      return findings.add("/events/ref", i, "packs are not in the order of /saved");
    }
    if (kind == EventKind::unpack && ref != unpacks++) {
      return findings.add("/events/ref", i, "unpacks are not in the order of /unpacks");
    }
    if (kind == EventKind::alloc &&
        trace.storages.alloc_event[static_cast<std::size_t>(ref)] != EventId(i)) {
      return findings.add("/events/ref", i,
                          "is " + number(ref) + ", a storage that was allocated elsewhere");
    }
    if (kind == EventKind::free &&
        trace.storages.free_event[static_cast<std::size_t>(ref)] != EventId(i)) {
      return findings.add("/events/ref", i,
                          "is " + number(ref) + ", a storage that was freed elsewhere");
    }
  }
}

void check_storages(const Trace& trace, Findings& findings) {
  const Storages& storages = trace.storages;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const EventId alloc = storages.alloc_event[i];
    const EventId free = storages.free_event[i];
    if (alloc.valid() && !is_event_of(trace, alloc, EventKind::alloc, i)) {
      return findings.add("/storages/alloc_event", i, not_its_event(alloc, "alloc"));
    }
    if (free.valid() && !is_event_of(trace, free, EventKind::free, i)) {
      return findings.add("/storages/free_event", i, not_its_event(free, "free"));
    }
    if (free.valid() && free < alloc) {
      return findings.add(
          "/storages/free_event", i,
          "is " + number(free.value) + ", before its alloc event " + number(alloc.value));
    }
    check_death(trace, "/storages/natural_free_event", i, storages.natural_free_event[i], alloc,
                "alloc", findings);
    if (storages.rounded_bytes[i] < storages.bytes[i]) {
      findings.add("/storages/rounded_bytes", i, "is less than the bytes asked for");
    }
    if (!findings.none()) return;
  }
}

void check_saved(const Trace& trace, Findings& findings) {
  const Saved& saved = trace.saved;
  std::vector<std::int32_t> index_of(trace.storages.size(), -1);
  std::int32_t next_index = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const StorageId storage = saved.storage[i];
    if (!is_event_of(trace, saved.event[i], EventKind::pack, i)) {
      return findings.add("/saved/event", i, not_its_event(saved.event[i], "pack"));
    }
    if (storage != trace.tensors.storage[saved.tensor[i].index()]) {
      return findings.add("/saved/storage", i,
                          "is " + number(storage.value) + ", not the storage of its tensor");
    }
    if (!storage.valid()) continue;
    std::int32_t& index = index_of[storage.index()];
    if (index < 0) index = next_index++;
    if (saved.storage_index[i] != index) {
      return findings.add("/saved/storage_index", i,
                          "is " + number(saved.storage_index[i]) +
                              "; numbered by first pack it would be " + number(index));
    }
    const Bytes bytes = trace.storages.bytes[storage.index()];
    const Bytes end = byte_range(trace, saved.tensor[i]).end;
    if (end > bytes) {
      return findings.add(
          "/saved/tensor", i,
          "is a view that ends at byte " + number(end) + " of a storage of " + number(bytes));
    }
    const EventId alloc = trace.storages.alloc_event[storage.index()];
    const EventId free = trace.storages.free_event[storage.index()];
    if (saved.event[i] < alloc || (free.valid() && free < saved.event[i])) {
      return findings.add(
          "/saved/event", i,
          "is " + number(saved.event[i].value) + ", while its storage is not alive");
    }
  }
  const Unpacks& unpacks = trace.unpacks;
  for (std::size_t i = 0; i < unpacks.size(); ++i) {
    const EventId event = unpacks.event[i];
    if (!is_event_of(trace, event, EventKind::unpack, i)) {
      return findings.add("/unpacks/event", i, not_its_event(event, "unpack"));
    }
    if (event < saved.event[unpacks.saved[i].index()]) {
      return findings.add("/unpacks/saved", i,
                          "is " + number(unpacks.saved[i].value) + ", which is packed later");
    }
    check_death(trace, "/unpacks/released_event", i, unpacks.released_event[i], event, "unpack",
                findings);
    if (!findings.none()) return;
  }
}

void check_allocator(const Trace& trace, Findings& findings) {
  const Storages& storages = trace.storages;
  Bytes live = 0;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (storages.device[i] == 0 && !storages.alloc_event[i].valid()) live += storages.bytes[i];
  }
  const AllocatorCurve& curve = trace.allocator;
  std::size_t row = 0;
  for (std::size_t i = 0; i < trace.events.size() && row < curve.size(); ++i) {
    const EventKind kind = trace.events.kind[i];
    const bool changes = kind == EventKind::alloc || kind == EventKind::free;
    if (changes) {
      const auto storage = static_cast<std::size_t>(trace.events.ref[i]);
      if (storages.device[storage] == 0) {
        live += kind == EventKind::alloc ? storages.bytes[storage] : -storages.bytes[storage];
      }
    }
    if (curve.event[row] != EventId(i)) continue;
    if (!changes) {
      return findings.add("/allocator/event", row,
                          "is " + number(curve.event[row].value) + ", neither alloc nor free");
    }
    if (curve.requested[row] >= 0 && curve.requested[row] != live) {
      return findings.add("/allocator/requested", row,
                          "is " + number(curve.requested[row]) + ", but " + number(live) +
                              " bytes are alive after event " + std::to_string(i));
    }
    ++row;
  }
  if (row < curve.size()) findings.add("/allocator/event", row, "events must increase");
}

}  // namespace stowage
