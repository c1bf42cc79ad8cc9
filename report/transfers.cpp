#include "report/transfers.h"

#include "simulator/schedule/tenant_kind.h"

namespace stowage::report {

std::string name_of_copy(const Trace& trace, const simulator::Schedule& schedule, StayId stay) {
  if (!stay.valid()) return "-";
  const simulator::Tenant& tenant = schedule.tenant(stay);
  if (serves_saved(schedule, stay)) return tenant.kind->place(trace, tenant);
  const LayerId layer = tenant.kind->layer(trace, tenant);
  return std::string(tenant.kind->name) + " of " +
         (layer.valid() ? trace.string(trace.layers.name[layer.index()]) : std::string("-"));
}

simulator::CopyMode mode_of_copy(const simulator::Schedule& schedule, StayId stay, bool is_store) {
  const simulator::Stay& of = schedule.stays[stay.index()];
  return is_store ? of.store_mode : of.load_mode;
}

bool serves_saved(const simulator::Schedule& schedule, StayId stay) {
  return !schedule.tenant(stay).saved.empty();
}

}  // namespace stowage::report
