// Rows of a schedule by what they are for: tests name "the copy out of the second saved tensor",
// "the first copy back", "a parameter's third stay".
#pragma once

#include <algorithm>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::testing {

// In order of rows.
inline std::vector<TenantId> tenants_of(const simulator::Schedule& schedule,
                                        const simulator::TenantKind& kind) {
  std::vector<TenantId> out;
  for (std::size_t t = 0; t < schedule.tenants.size(); ++t) {
    if (schedule.tenants[t].kind == &kind) out.emplace_back(t);
  }
  return out;
}

inline std::vector<StayId> stays_of(const simulator::Schedule& schedule,
                                    const simulator::TenantKind& kind, bool made) {
  std::vector<StayId> out;
  for (std::size_t s = 0; s < schedule.stays.size(); ++s) {
    const StayId id(s);
    if (schedule.tenant(id).kind == &kind && schedule.stays[s].is_made == made) out.push_back(id);
  }
  return out;
}

// Saved tensors: the storages that leave, in order of first packs; the copies back, in order of
// first unpacks.
inline std::vector<StayId> made_stays(const simulator::Schedule& schedule) {
  return stays_of(schedule, simulator::kSavedTensor, true);
}
inline std::vector<StayId> reloads(const simulator::Schedule& schedule) {
  return stays_of(schedule, simulator::kSavedTensor, false);
}
// Of streamed parameters, in order of their awaits.
inline std::vector<StayId> parameter_stays(const simulator::Schedule& schedule) {
  return stays_of(schedule, simulator::kParameter, false);
}
inline std::vector<TenantId> parameters(const simulator::Schedule& schedule) {
  return tenants_of(schedule, simulator::kParameter);
}

// The rows themselves, for tests that count what moves: ranges of storages that are offloaded,
// parameters that stream, copies back of saved tensors.
inline std::vector<simulator::Tenant> rows_of(const simulator::Schedule& schedule,
                                              const simulator::TenantKind& kind) {
  std::vector<simulator::Tenant> rows;
  for (const TenantId id : tenants_of(schedule, kind)) rows.push_back(schedule.tenants[id.index()]);
  return rows;
}
inline std::vector<simulator::Tenant> offloads_of(const simulator::Schedule& schedule) {
  return rows_of(schedule, simulator::kSavedTensor);
}
inline std::vector<simulator::Tenant> parameters_of(const simulator::Schedule& schedule) {
  return rows_of(schedule, simulator::kParameter);
}
inline std::vector<simulator::Stay> reloads_of(const simulator::Schedule& schedule) {
  std::vector<simulator::Stay> rows;
  for (const StayId id : reloads(schedule)) rows.push_back(schedule.stays[id.index()]);
  return rows;
}

}  // namespace stowage::testing
