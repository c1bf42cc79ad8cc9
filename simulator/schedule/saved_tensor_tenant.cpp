#include "simulator/schedule/saved_tensor_tenant.h"

#include <algorithm>

namespace stowage::simulator {
namespace {

std::string place_of_saved(const Trace& trace, const Tenant& tenant) {
  return tenant.saved.empty() ? "-" : trace.string(trace.saved.site[tenant.saved.front().index()]);
}

LayerId layer_of_saved(const Trace& trace, const Tenant& tenant) {
  return tenant.saved.empty() ? LayerId() : trace.saved.layer[tenant.saved.front().index()];
}

// Unpacks use the stay that serves them; ops that write the storage write the made stay.
void list_saved_uses(const ScheduleIndex& index, TenantId tenant, std::vector<TenantUse>& uses) {
  for (const StayId id : index.stays_of(tenant)) {
    const Stay& stay = index.schedule().stays[id.index()];
    for (const UnpackId unpack : stay.unpacks) {
      const EventId event = index.trace().unpacks.event[unpack.index()];
      uses.push_back({event, event, false, false, id});
    }
    if (!stay.is_made) continue;
    const StorageId storage = index.schedule().tenants[tenant.index()].storage;
    for (const EventId event : index.step().writes_of(storage)) {
      uses.push_back({event, event, false, true, id});
    }
  }
}

class SavedTensorCheck {
 public:
  SavedTensorCheck(const ScheduleIndex& index, TenantId id, const ReportFlaw& report)
      : index_(index),
        trace_(index.trace()),
        s_(index.schedule()),
        id_(id),
        tenant_(s_.tenants[id.index()]),
        report_(report) {}

  void run() {
    check_tenant();
    std::int32_t leaves = -1;  // row of the made stay's evict
    int made = 0;
    for (const StayId id : index_.stays_of(id_)) {
      if (!s_.stays[id.index()].is_made) continue;
      ++made;
      leaves = index_.row_of(id, Action::evict);
      check_made(id);
    }
    if (made != 1) report_(name() + " has no single stay that is the storage itself", {});
    for (const StayId id : index_.stays_of(id_)) {
      if (!s_.stays[id.index()].is_made) check_loaded(id, leaves);
    }
  }

 private:
  [[nodiscard]] std::string name() const { return label(trace_, s_, id_); }
  [[nodiscard]] std::string site(SavedId s) const {
    return trace_.string(trace_.saved.site[s.index()]);
  }

  void check_tenant() {
    if (tenant_.has_own_home) report_(name() + " is not at home all the time", {});
    if (!std::is_sorted(tenant_.saved.begin(), tenant_.saved.end())) {
      report_(name() + " lists its saved tensors out of order", {});
    }
    const Bytes storage_bytes = trace_.storages.bytes[tenant_.storage.index()];
    for (const SavedId s : tenant_.saved) {
      if (s_.tenant_of[s.index()] != id_ || trace_.saved.storage[s.index()] != tenant_.storage) {
        report_(name() + " and its saved tensor " + site(s) + " do not refer to each other", {});
      }
      ByteRange view = byte_range(trace_, trace_.saved.tensor[s.index()]);
      view.end = std::min(view.end, storage_bytes);
      if (view.size() > 0 &&
          (view.begin < tenant_.begin || view.end > tenant_.begin + tenant_.bytes)) {
        report_(name() + " does not copy all bytes of " + site(s), {});
      }
    }
    for (const SavedId s : index_.step().saved_of(tenant_.storage)) {
      if (s_.tenant_of[s.index()].valid()) continue;
      report_(name() + " gives up a storage that " + site(s) + " keeps", {});
    }
  }

  void check_made(StayId id) {
    if (!s_.stays[id.index()].is_stored) report_(name() + " leaves without a store", {});
    if (const std::int32_t store = index_.row_of(id, Action::store);
        store >= 0 && index_.place_of(store) != store_place(trace_, tenant_.saved)) {
      report_(name() + " does not start behind its first pack", index_.place_of(store).event);
    }
  }

  void check_loaded(StayId id, std::int32_t leaves) {
    const Stay& stay = s_.stays[id.index()];
    const std::string what = "a reload of " + name();
    if (stay.unpacks.empty()) return report_(what + " serves no unpack", {});
    const EventId event = await_place(trace_, stay.unpacks).event;
    if (stay.is_stored) report_(what + " is stored, but nothing writes it", event);
    if (!std::is_sorted(stay.unpacks.begin(), stay.unpacks.end())) {
      report_(what + " lists its unpacks out of order", event);
    }
    for (const UnpackId u : stay.unpacks) {
      if (s_.stay_of[u.index()] == id) continue;
      report_(what + " and unpack " + std::to_string(u.value) + " do not refer to each other",
              trace_.unpacks.event[u.index()]);
    }
    if (const std::int32_t load = index_.row_of(id, Action::load);
        load >= 0 && leaves >= 0 && load < leaves) {
      report_(what + " starts ahead of the eviction", event);
    }
    if (const std::int32_t await = index_.row_of(id, Action::await);
        await >= 0 && index_.place_of(await) > await_place(trace_, stay.unpacks)) {
      report_(what + " is awaited behind its first unpack", event);
    }
    if (const std::int32_t evict = index_.row_of(id, Action::evict);
        evict >= 0 && index_.place_of(evict) != evict_place(trace_, stay.unpacks)) {
      report_(what + " is not evicted behind its last unpack", event);
    }
  }

  const ScheduleIndex& index_;
  const Trace& trace_;
  const Schedule& s_;
  const TenantId id_;
  const Tenant& tenant_;
  const ReportFlaw& report_;
};

void check_saved(const ScheduleIndex& index, TenantId tenant, const ReportFlaw& report) {
  SavedTensorCheck(index, tenant, report).run();
}

}  // namespace

const TenantKind kSavedTensor{"saved tensor",  true,       false, place_of_saved, layer_of_saved,
                              list_saved_uses, check_saved};

Place store_place(const Trace& trace, std::span<const SavedId> saved) {
  return {trace.saved.event[saved.front().index()], Side::after};
}

Place await_place(const Trace& trace, std::span<const UnpackId> unpacks) {
  return {trace.unpacks.event[unpacks.front().index()], Side::before};
}

Place evict_place(const Trace& trace, std::span<const UnpackId> unpacks) {
  return {trace.unpacks.event[unpacks.back().index()], Side::after};
}

}  // namespace stowage::simulator
