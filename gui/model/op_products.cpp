#include "gui/model/op_products.h"

#include <algorithm>

namespace stowage::gui {

std::vector<bool> ops_inside(const Trace& trace, OpId id) {
  std::vector<bool> inside(trace.ops.size(), false);
  inside[id.index()] = true;
  // Ops stand behind those that they are inside of.
  for (std::size_t i = id.index() + 1; i < inside.size(); ++i) {
    const OpId parent = trace.ops.parent[i];
    inside[i] = parent.valid() && inside[parent.index()];
  }
  return inside;
}

OpProducts products_of(const Trace& trace, OpId id, const std::vector<bool>& ops) {
  const Storages& s = trace.storages;
  EventId end;
  for (std::size_t e = trace.events.size(); e-- > 0 && !end.valid();) {
    const bool is_its_end =
        trace.events.kind[e] == EventKind::op_end && trace.events.ref[e] == id.value;
    if (is_its_end) end = EventId(e);
  }
  OpProducts products;
  for (std::size_t k = 0; k < s.size(); ++k) {
    const OpId op = s.alloc_op[k];
    if (!op.valid() || !ops[op.index()] || s.bytes[k] == 0) continue;
    const bool is_gone = s.free_event[k].valid() && end.valid() && s.free_event[k] < end;
    if (!is_gone) {
      products.kept.push_back(StorageId(k));
      continue;
    }
    ++products.temporaries;
    products.temporary_bytes += s.bytes[k];
  }
  std::stable_sort(products.kept.begin(), products.kept.end(), [&](StorageId a, StorageId b) {
    return s.bytes[a.index()] > s.bytes[b.index()];
  });
  return products;
}

}  // namespace stowage::gui
