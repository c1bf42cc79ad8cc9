// Rows of a schedule by kind, for tests that count what moves.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::testing {

[[nodiscard]] inline std::vector<simulator::Tenant> tenants_of(const simulator::Schedule& schedule,
                                                               const simulator::TenantKind& kind) {
  std::vector<simulator::Tenant> tenants;
  for (const simulator::Tenant& tenant : schedule.tenants) {
    if (tenant.kind == &kind) tenants.push_back(tenant);
  }
  return tenants;
}

// Storages, or ranges of them, that are offloaded.
[[nodiscard]] inline std::vector<simulator::Tenant> offloads_of(
    const simulator::Schedule& schedule) {
  return tenants_of(schedule, simulator::kSavedTensor);
}

// Parameters that stream.
[[nodiscard]] inline std::vector<simulator::Tenant> parameters_of(
    const simulator::Schedule& schedule) {
  return tenants_of(schedule, simulator::kParameter);
}

// Copies back of saved tensors.
[[nodiscard]] inline std::vector<simulator::Stay> reloads_of(const simulator::Schedule& schedule) {
  std::vector<simulator::Stay> stays;
  for (const simulator::Stay& stay : schedule.stays) {
    if (!stay.unpacks.empty()) stays.push_back(stay);
  }
  return stays;
}

}  // namespace stowage::testing
