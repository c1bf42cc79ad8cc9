#include "profiler/assembly/join.h"

#include <algorithm>

namespace stowage::profiler {

namespace {

Error differ(const std::string& message) {
  return {ErrorCode::bad_input, "the passes of the recording did different things: " + message, "",
          "", "a step must do the same each time: fixed shapes, no data-dependent control flow"};
}

template <class Row>
const Row& row(const std::vector<Row>& rows, std::int64_t id) {
  return rows[static_cast<std::size_t>(id)];
}

std::string layer_name(const RawPass& pass, std::int64_t id) {
  return id < 0 ? std::string("step") : row(pass.layer_paths, id);
}

bool same_view(const RawView& a, const RawView& b) {
  return a.dtype == b.dtype && a.item_bytes == b.item_bytes && a.shape == b.shape &&
         a.strides == b.strides && a.offset == b.offset;
}

bool same_event(const RawPass& a, const RawEvent& x, const RawPass& b, const RawEvent& y) {
  if (x.kind != y.kind) return false;
  switch (x.kind) {
    case RawKind::alloc:
      return x.bytes == y.bytes;
    case RawKind::pack: {
      const RawSaved& p = row(a.saved, x.id);
      const RawSaved& q = row(b.saved, y.id);
      return layer_name(a, p.layer) == layer_name(b, q.layer) && p.call == q.call &&
             p.ordinal == q.ordinal && (a.light || b.light || same_view(p.view, q.view));
    }
    case RawKind::unpack:
      return row(a.unpacks, x.id).saved == row(b.unpacks, y.id).saved;
    case RawKind::layer_forward_begin:
    case RawKind::layer_forward_end:
    case RawKind::layer_backward_begin:
    case RawKind::layer_backward_end:
    case RawKind::recompute_begin:
    case RawKind::recompute_end:
      return layer_name(a, x.id) == layer_name(b, y.id);
    case RawKind::op_begin:
    case RawKind::op_end:
      return row(a.ops, x.id).name == row(b.ops, y.id).name;
    default:
      return true;
  }
}

}  // namespace

std::string describe(const RawPass& pass, const RawEvent& event) {
  switch (event.kind) {
    case RawKind::step_begin:
      return "step begin";
    case RawKind::step_end:
      return "step end";
    case RawKind::alloc:
      return "alloc " + std::to_string(event.bytes) + " B";
    case RawKind::free:
      return "free";
    case RawKind::pack: {
      const RawSaved& saved = row(pass.saved, event.id);
      return "pack " + layer_name(pass, saved.layer) + "#" + std::to_string(saved.ordinal);
    }
    case RawKind::unpack:
      return "unpack of saved tensor " + std::to_string(row(pass.unpacks, event.id).saved);
    case RawKind::released:
      return "released";
    case RawKind::hook_gone:
      return "end of the hook of saved tensor " + std::to_string(event.id);
    case RawKind::layer_forward_begin:
      return "forward begin of " + layer_name(pass, event.id);
    case RawKind::layer_forward_end:
      return "forward end of " + layer_name(pass, event.id);
    case RawKind::layer_backward_begin:
      return "backward begin of " + layer_name(pass, event.id);
    case RawKind::layer_backward_end:
      return "backward end of " + layer_name(pass, event.id);
    case RawKind::gradient_accumulated:
      return "gradient accumulated";
    case RawKind::op_begin:
      return "begin of " + row(pass.ops, event.id).name;
    case RawKind::op_end:
      return "end of " + row(pass.ops, event.id).name;
    case RawKind::backward_begin:
      return "backward begin";
    case RawKind::backward_end:
      return "backward end";
    case RawKind::recompute_begin:
      return layer_name(pass, event.id) + " runs again";
    case RawKind::recompute_end:
      return "end of " + layer_name(pass, event.id) + " running again";
    case RawKind::parameter_update_begin:
      return "begin of a parameter's update";
    case RawKind::parameter_update_end:
      return "end of a parameter's update";
  }
  return "event";
}

Result<std::vector<std::int32_t>> align(const RawPass& structure, const RawPass& other) {
  std::vector<std::int32_t> rows(structure.events.size(), -1);
  std::vector<std::int32_t> my_frees;
  std::vector<std::int32_t> their_frees;
  const auto in_both = [&](RawKind kind) {
    return is_common(kind) && (other.hooked || (kind != RawKind::pack && kind != RawKind::unpack));
  };
  // Collects frees and returns the row of the next common event, or the size.
  const auto next_common = [&](const RawPass& pass, std::size_t at,
                               std::vector<std::int32_t>& frees) {
    frees.clear();
    for (; at < pass.events.size() && !in_both(pass.events[at].kind); ++at) {
      if (pass.events[at].kind == RawKind::free) frees.push_back(static_cast<std::int32_t>(at));
    }
    return at;
  };
  std::size_t mine = 0;
  std::size_t theirs = 0;
  for (;;) {
    mine = next_common(structure, mine, my_frees);
    theirs = next_common(other, theirs, their_frees);
    if (my_frees.size() == their_frees.size()) {
      for (std::size_t i = 0; i < my_frees.size(); ++i) {
        rows[static_cast<std::size_t>(my_frees[i])] = their_frees[i];
      }
    }
    const bool my_end = mine == structure.events.size();
    const bool their_end = theirs == other.events.size();
    if (my_end && their_end) return rows;
    if (my_end || their_end) {
      return differ("after the last event of one pass the other has " +
                    (my_end ? describe(other, other.events[theirs])
                            : describe(structure, structure.events[mine])));
    }
    if (!same_event(structure, structure.events[mine], other, other.events[theirs])) {
      return differ("event " + std::to_string(mine) + " is " +
                    describe(structure, structure.events[mine]) + " in one and " +
                    describe(other, other.events[theirs]) + " in the other");
    }
    rows[mine++] = static_cast<std::int32_t>(theirs++);
  }
}

Result<Ends> join(const RawPass& structure, const RawPass& offload_all) {
  if (structure.live_at_begin.size() != offload_all.live_at_begin.size()) {
    return differ(std::to_string(structure.live_at_begin.size()) + " against " +
                  std::to_string(offload_all.live_at_begin.size()) +
                  " allocations alive when the step began");
  }
  // Serial in offload_all -> serial in structure: by rank for what existed, by order for the rest.
  std::unordered_map<std::int64_t, std::int64_t> to_structure;
  for (std::size_t i = 0; i < structure.live_at_begin.size(); ++i) {
    if (structure.live_at_begin[i].bytes != offload_all.live_at_begin[i].bytes) {
      return differ("an allocation that existed before the step has another size");
    }
    to_structure[offload_all.live_at_begin[i].serial] = structure.live_at_begin[i].serial;
  }

  Ends ends;
  ends.released_after.assign(structure.unpacks.size(), -1);
  std::size_t mine = 0;
  std::int32_t last_common = -1;
  for (const RawEvent& theirs : offload_all.events) {
    if (theirs.kind == RawKind::free) {
      if (const auto found = to_structure.find(theirs.id); found != to_structure.end()) {
        ends.freed_after[found->second] = last_common;
      }
      continue;
    }
    if (theirs.kind == RawKind::hook_gone) continue;
    if (theirs.kind == RawKind::released) {
      const auto unpack = static_cast<std::size_t>(theirs.id);
      if (unpack < ends.released_after.size()) ends.released_after[unpack] = last_common;
      continue;
    }
    while (mine < structure.events.size() && !is_common(structure.events[mine].kind)) ++mine;
    if (mine == structure.events.size()) {
      return differ("after the last event of one pass the other has " +
                    describe(offload_all, theirs));
    }
    const RawEvent& ours = structure.events[mine];
    if (!same_event(structure, ours, offload_all, theirs)) {
      return differ("event " + std::to_string(mine) + " is " + describe(structure, ours) +
                    " in one and " + describe(offload_all, theirs) + " in the other");
    }
    if (ours.kind == RawKind::alloc) to_structure[theirs.id] = ours.id;
    last_common = static_cast<std::int32_t>(mine);
    ++mine;
  }
  while (mine < structure.events.size() && !is_common(structure.events[mine].kind)) ++mine;
  if (mine != structure.events.size()) {
    return differ("after the last event of one pass the other has " +
                  describe(structure, structure.events[mine]));
  }
  return ends;
}

}  // namespace stowage::profiler
