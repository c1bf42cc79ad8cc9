#include "simulator/schedule/host_updates.h"

#include <map>

namespace stowage::simulator {

std::vector<HostUpdate> host_updates(const Trace& trace, const Schedule& schedule) {
  std::vector<HostUpdate> updates;
  std::map<StorageId, HostUpdate> of_parameter;
  bool is_known = false;
  for (const Instruction& each : schedule.instructions) {
    if (each.action != Action::update) continue;
    for (std::size_t t = 0; t < schedule.tenants.size() && !is_known; ++t) {
      const Tenant& tenant = schedule.tenants[t];
      if (!tenant.is_updated_at_home) continue;
      const StorageId owner = trace.storages.parameter[tenant.storage.index()];
      HostUpdate& of = of_parameter[owner.valid() ? owner : tenant.storage];
      if (owner.valid()) {
        of.state.emplace_back(t);
      } else {
        of.parameter = TenantId(t);
      }
      of.bytes += tenant.bytes;
    }
    is_known = true;
    const StorageId gradient = schedule.tenant(each.stay).storage;
    const auto found = of_parameter.find(trace.storages.parameter[gradient.index()]);
    HostUpdate update = found == of_parameter.end() ? HostUpdate{} : found->second;
    update.stay = each.stay;
    update.of = trace.storages.parameter[gradient.index()];
    update.gradient = schedule.stays[each.stay.index()].tenant;
    update.bytes += schedule.tenant(each.stay).bytes;
    updates.push_back(std::move(update));
  }
  return updates;
}

}  // namespace stowage::simulator
