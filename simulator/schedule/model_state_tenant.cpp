// Model state as tenants: parameters and the optimizer's state, at home on the host, on the device
// in loaded stays alone. What touches one (simulator/step/model_state_uses.h) needs a stay; the
// optimizer's writes are stored.
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

// Of optimizer state that of its parameter.
LayerId layer_of_state(const Trace& trace, const Tenant& tenant) {
  const StorageId parameter = trace.storages.parameter[tenant.storage.index()];
  return trace.storages.layer[parameter.valid() ? parameter.index() : tenant.storage.index()];
}

std::string place_of_state(const Trace& trace, const Tenant& tenant) {
  const LayerId layer = layer_of_state(trace, tenant);
  return layer.valid() ? trace.string(trace.layers.name[layer.index()]) : "no layer";
}

void list_state_uses(const ScheduleIndex& index, TenantId tenant, std::vector<TenantUse>& uses) {
  const StorageId storage = index.schedule().tenants[tenant.index()].storage;
  for (const ModelStateTouch& touch : index.step().model_state_uses().touches_of(storage)) {
    uses.push_back({touch.begin, touch.end, touch.ends_behind, touch.writes, {}});
  }
}

void check_state(const ScheduleIndex& index, TenantId id, const ReportFlaw& report) {
  const Tenant& tenant = index.schedule().tenants[id.index()];
  const std::string name = label(index.trace(), index.schedule(), id);
  if (!tenant.has_own_home) report(name + " has no home of its own", {});
  if (!tenant.saved.empty()) report(name + " serves saved tensors", {});
}

}  // namespace

const TenantKind kParameter{"parameter",    false,           place_of_state,
                            layer_of_state, list_state_uses, check_state};

const TenantKind kOptimizerState{"optimizer state", false,           place_of_state,
                                 layer_of_state,    list_state_uses, check_state};

}  // namespace stowage::simulator
