#include "report/storage_uses.h"

#include <algorithm>
#include <utility>

#include "simulator/machine/link_model.h"
#include "traces/result.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

struct OpEvents {
  std::vector<EventId> begin;
  std::vector<EventId> end;
};

// Of an op without events of its own, of the one that it is inside.
OpEvents op_events(const Trace& trace) {
  OpEvents events{std::vector<EventId>(trace.ops.size()), std::vector<EventId>(trace.ops.size())};
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const auto row = static_cast<std::size_t>(trace.events.ref[e]);
    if (trace.events.kind[e] == EventKind::op_begin) events.begin[row] = EventId(e);
    if (trace.events.kind[e] == EventKind::op_end) events.end[row] = EventId(e);
  }
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpId parent = trace.ops.parent[i];
    if (!parent.valid()) continue;
    if (!events.begin[i].valid()) events.begin[i] = events.begin[parent.index()];
    if (!events.end[i].valid()) events.end[i] = events.end[parent.index()];
  }
  return events;
}

template <class Visit>
void visit_uses(const Trace& trace, const OpEvents& ops, const Visit& visit) {
  const auto add = [&](StorageId storage, EventId first, EventId last) {
    if (storage.valid() && first.valid()) visit(storage, StorageUse{first, std::max(first, last)});
  };
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const OpId op = trace.storages.alloc_op[i];
    add(StorageId(i), trace.storages.alloc_event[i], op.valid() ? ops.end[op.index()] : EventId());
  }
  for (std::size_t i = 0; i < trace.uses.size(); ++i) {
    const std::size_t op = trace.uses.op[i].index();
    add(trace.tensors.storage[trace.uses.tensor[i].index()], ops.begin[op], ops.end[op]);
  }
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    add(trace.saved.storage[i], trace.saved.event[i], {});
  }
  for (std::size_t i = 0; i < trace.unpacks.size(); ++i) {
    add(trace.saved.storage[trace.unpacks.saved[i].index()], trace.unpacks.event[i],
        trace.unpacks.released_event[i]);
  }
}

// In this step.
bool is_freed(const Trace& trace, StorageId storage) {
  return trace.storages.free_event[storage.index()].valid();
}

// When a storage is used ahead of a moment and behind it, in the periods around this one too.
struct Gap {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

Nanoseconds away_time(const Trace& trace, Bytes bytes) {
  const LinkCurve& out = trace.calibration.d2h;
  const LinkCurve& back = trace.calibration.h2d;
  if (!simulator::is_usable(out) || !simulator::is_usable(back)) return -1;
  return simulator::transfer_ns(out, bytes) + simulator::transfer_ns(back, bytes);
}

}  // namespace

StorageUses::StorageUses(const Trace& trace) : first_(trace.storages.size() + 1, 0) {
  const OpEvents ops = op_events(trace);
  visit_uses(trace, ops,
             [&](StorageId storage, const StorageUse&) { ++first_[storage.index() + 1]; });
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  uses_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  visit_uses(trace, ops, [&](StorageId storage, const StorageUse& use) {
    uses_[next[storage.index()]++] = use;
  });
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
    std::sort(uses_.begin() + first_[i], uses_.begin() + first_[i + 1],
              [](const StorageUse& a, const StorageUse& b) {
                return std::pair(a.first, a.last) < std::pair(b.first, b.last);
              });
  }
}

StorageUses::Range StorageUses::operator[](StorageId storage) const {
  return {uses_.data() + first_[storage.index()], uses_.data() + first_[storage.index() + 1]};
}

const char* name_of(ByteUse value) {
  switch (value) {
    case ByteUse::needed:
      return "needed";
    case ByteUse::saved:
      return "saved";
    case ByteUse::idle:
      return "idle";
    case ByteUse::dead:
      return "dead";
  }
  STOWAGE_ASSERT(false && "unknown use of bytes");
}

BytesByUse bytes_by_use(const Trace& trace, const StorageUses& uses, const Alive& alive,
                        const std::vector<Nanoseconds>& time, Nanoseconds step) {
  BytesByUse out;
  for (const AliveStorage& each : alive.storages) {
    AliveUse row;
    const StorageUses::Range all = uses[each.storage];
    bool is_in_use = false;
    for (const StorageUse& use : all) {
      if (use.first > alive.event) {
        row.next_use = use.first;
        break;
      }
      is_in_use = is_in_use || use.last >= alive.event;
      row.last_use = std::max(row.last_use, use.last);
    }
    const bool is_old = !trace.storages.alloc_event[each.storage.index()].valid();
    const bool comes_again = is_old && !is_freed(trace, each.storage) && all.size() > 0;
    Gap gap{0, step};
    if (row.next_use.valid()) {
      gap.end = time[row.next_use.index()];
    } else if (comes_again) {
      gap.end = step + time[all.begin()->first.index()];
    }
    if (row.last_use.valid()) {
      gap.begin = time[row.last_use.index()];
    } else if (comes_again) {
      EventId last;
      for (const StorageUse& use : all) last = std::max(last, use.last);
      gap.begin = time[last.index()] - step;
    }
    const Nanoseconds away = away_time(trace, each.bytes);
    if (is_in_use) {
      row.use = ByteUse::needed;
    } else if (!row.next_use.valid() && is_freed(trace, each.storage)) {
      row.use = ByteUse::dead;
    } else if (away < 0 || gap.end - gap.begin <= away) {
      row.use = ByteUse::needed;
    } else {
      row.use = each.saved.valid() && !is_old ? ByteUse::saved : ByteUse::idle;
    }
    out.bytes[static_cast<std::size_t>(row.use)] += each.bytes;
    out.rows.push_back(row);
  }
  return out;
}

std::string use_headline(const BytesByUse& by_use, ByteUnits units) {
  Bytes sum = 0;
  for (const Bytes bytes : by_use.bytes) sum += bytes;
  std::string text = format_bytes(sum, units);
  const char* sign = ": ";
  constexpr std::pair<ByteUse, const char*> kWords[] = {{ByteUse::dead, " dead"},
                                                        {ByteUse::saved, " saved and idle"},
                                                        {ByteUse::idle, " idle"},
                                                        {ByteUse::needed, " needed"}};
  for (const auto& [use, word] : kWords) {
    if (by_use.of(use) == 0) continue;
    text += sign + format_bytes(by_use.of(use), units) + word;
    sign = ", ";
  }
  return text;
}

}  // namespace stowage::report
