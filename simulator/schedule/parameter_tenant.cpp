// Parameters as tenants: at home on the host, on the device in loaded stays alone. What touches a
// parameter (simulator/step/parameter_uses.h) needs a stay; the optimizer's writes are stored.
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

LayerId layer_of_parameter(const Trace& trace, const Tenant& tenant) {
  return trace.storages.layer[tenant.storage.index()];
}

std::string place_of_parameter(const Trace& trace, const Tenant& tenant) {
  const LayerId layer = layer_of_parameter(trace, tenant);
  return layer.valid() ? trace.string(trace.layers.name[layer.index()]) : "no layer";
}

void list_parameter_uses(const ScheduleIndex& index, TenantId tenant,
                         std::vector<TenantUse>& uses) {
  const StorageId storage = index.schedule().tenants[tenant.index()].storage;
  for (const ParameterTouch& touch : index.step().parameter_uses().touches_of(storage)) {
    uses.push_back({touch.begin, touch.end, touch.ends_behind, touch.writes, {}});
  }
}

void check_parameter(const ScheduleIndex& index, TenantId id, const ReportFlaw& report) {
  const Tenant& tenant = index.schedule().tenants[id.index()];
  const std::string name = label(index.trace(), index.schedule(), id);
  if (!tenant.has_own_home) report(name + " has no home of its own", {});
  if (!tenant.saved.empty()) report(name + " serves saved tensors", {});
}

}  // namespace

const TenantKind kParameter{"parameter",         false,
                            place_of_parameter,  layer_of_parameter,
                            list_parameter_uses, check_parameter};

}  // namespace stowage::simulator
