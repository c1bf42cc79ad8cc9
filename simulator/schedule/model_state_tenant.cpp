// Model state as tenants: parameters, the optimizer's state and gradients, at home on the host.
// What touches one (simulator/step/model_state_uses.h) needs a stay; what is written is stored.
// Parameters and state are on the device in loaded stays alone; a gradient's first stay is made.
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

// Of optimizer state and of a gradient that of its parameter.
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

void check_older(const ScheduleIndex& index, TenantId id, const ReportFlaw& report) {
  check_state(index, id, report);
  if (!index.schedule().tenants[id.index()].previous.valid()) return;
  report(label(index.trace(), index.schedule(), id) + " is made anew in each step", {});
}

void check_gradient(const ScheduleIndex& index, TenantId id, const ReportFlaw& report) {
  check_state(index, id, report);
  const StorageId previous = index.schedule().tenants[id.index()].previous;
  if (!previous.valid() || index.step().model_state_uses().touches_of(previous).empty()) return;
  report(label(index.trace(), index.schedule(), id) + " takes the place of one that the step uses",
         {});
}

}  // namespace

const TenantKind kParameter{"parameter",    false,           false,      place_of_state,
                            layer_of_state, list_state_uses, check_older};

const TenantKind kOptimizerState{"optimizer state", false,           false,      place_of_state,
                                 layer_of_state,    list_state_uses, check_older};

const TenantKind kGradient{"gradient",     false,           true,          place_of_state,
                           layer_of_state, list_state_uses, check_gradient};

}  // namespace stowage::simulator
