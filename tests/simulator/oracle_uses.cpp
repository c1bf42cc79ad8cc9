#include "tests/simulator/oracle_uses.h"

#include <algorithm>

#include "simulator/schedule/tenant_kind.h"

namespace stowage::testing {
namespace {

class UseFinder {
 public:
  UseFinder(const Trace& trace, const simulator::Schedule& schedule)
      : trace_(trace), s_(schedule) {}

  std::vector<OracleUse> run() {
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      const simulator::Tenant& tenant = s_.tenants[t];
      for (std::size_t u = 0; u < trace_.uses.size(); ++u) {
        if (storage_of(trace_.uses.tensor[u]) == tenant.storage) add_op(TenantId(t), u);
      }
      for (std::size_t u = 0; u < trace_.unpacks.size(); ++u) add_unpack(TenantId(t), u);
      for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
        const bool packs = storage_of(trace_.saved.tensor[s]) == tenant.storage;
        const int event = trace_.saved.event[s].value;
        if (packs && !tenant.kind->is_snapshot) out_.push_back({TenantId(t), {}, event, event});
      }
      if (tenant.kind->is_made_anew) add_making(TenantId(t));
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] StorageId storage_of(TensorId tensor) const {
    return trace_.tensors.storage[tensor.index()];
  }
  // The event of this kind that names the op, or none: -1.
  [[nodiscard]] int event_of(EventKind kind, OpId op) const {
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      if (trace_.events.kind[e] == kind && trace_.events.ref[e] == op.value) {
        return static_cast<int>(e);
      }
    }
    return -1;
  }

  void add_op(TenantId tenant, std::size_t use) {
    const UseMode mode = trace_.uses.mode[use];
    const bool writes = mode == UseMode::write || mode == UseMode::in_place;
    OpId op = trace_.uses.op[use];
    if (s_.tenants[tenant.index()].kind->is_snapshot) {
      const int event = event_of(EventKind::op_begin, op);
      if (writes) out_.push_back({tenant, {}, event, event, false, true, true});
      return;
    }
    while (trace_.ops.parent[op.index()].valid()) op = trace_.ops.parent[op.index()];
    const int end = event_of(EventKind::op_end, op);
    const int last = static_cast<int>(trace_.events.size()) - 1;
    out_.push_back(
        {tenant, {}, event_of(EventKind::op_begin, op), end < 0 ? last : end, false, writes});
  }

  // The op that makes it writes it; then autograd reports each time that something was added.
  void add_making(TenantId id) {
    const StorageId storage = s_.tenants[id.index()].storage;
    const int made = trace_.storages.alloc_event[storage.index()].value;
    OpId op = trace_.storages.alloc_op[storage.index()];
    while (op.valid() && trace_.ops.parent[op.index()].valid()) op = trace_.ops.parent[op.index()];
    int begin = made;
    int end = made;
    if (op.valid() && event_of(EventKind::op_begin, op) < made &&
        event_of(EventKind::op_end, op) > made) {
      begin = event_of(EventKind::op_begin, op);
      end = event_of(EventKind::op_end, op);
    }
    out_.push_back({id, {}, begin, end, false, true});
    for (int e = made; e < static_cast<int>(trace_.events.size()); ++e) {
      const auto row = static_cast<std::size_t>(e);
      if (trace_.events.kind[row] != EventKind::gradient_accumulated) continue;
      if (trace_.events.ref[row] != trace_.storages.parameter[storage.index()].value) continue;
      out_.push_back({id, {}, e, e});
    }
  }

  void add_unpack(TenantId tenant, std::size_t unpack) {
    const SavedId saved = trace_.unpacks.saved[unpack];
    const int event = trace_.unpacks.event[unpack].value;
    if (s_.tenants[tenant.index()].kind->is_snapshot) {
      const StayId stay = s_.stay_of[unpack];
      if (s_.tenant_of[saved.index()] == tenant && stay.valid()) {
        out_.push_back({tenant, stay, event, event});
      }
    } else if (storage_of(trace_.saved.tensor[saved.index()]) ==
               s_.tenants[tenant.index()].storage) {
      const int released = trace_.unpacks.released_event[unpack].value;
      out_.push_back({tenant, {}, event, std::max(event, released), true});
    }
  }

  const Trace& trace_;
  const simulator::Schedule& s_;
  std::vector<OracleUse> out_;
};

}  // namespace

std::vector<OracleUse> oracle_uses(const Trace& trace, const simulator::Schedule& schedule) {
  return UseFinder(trace, schedule).run();
}

}  // namespace stowage::testing
