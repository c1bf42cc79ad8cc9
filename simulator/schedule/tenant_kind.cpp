#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {

std::string label(const Trace& trace, const Schedule& schedule, TenantId tenant) {
  const Tenant& of = schedule.tenants[tenant.index()];
  return std::string(of.kind->name) + " " + std::to_string(tenant.value) + " (" +
         of.kind->place(trace, of) + ")";
}

}  // namespace stowage::simulator
