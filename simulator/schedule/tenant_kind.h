// What differs between the kinds of tenants, one row a kind. Everything that reads a schedule
// (hazards, replay, allocator, reports, executor) goes by the tenants' and stays' own fields and by
// these rows, so a further kind is one more row, in a file of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/schedule/schedule_index.h"

namespace stowage::simulator {

// The step uses a tenant's bytes, from one event to another.
struct TenantUse {
  EventId begin;
  EventId end;
  bool ends_behind = false;  // it is over in the gap behind `end`, not at it
  bool writes = false;
  StayId stay;  // which has to be there; none: any one of the tenant's
};

using ReportFlaw = std::function<void(const std::string& text, EventId event)>;

struct TenantKind {
  const char* name;  // "saved tensor"
  // The bytes at home are those of the first store, whatever is written to the storage later: what
  // a saved tensor is. Else a write behind the store is lost.
  bool is_snapshot;
  // Of what has a home of its own: each step makes it, in its first stay, the made one, whose bytes
  // the home has from then on; none of its stays goes over the step's end. Else the storage existed
  // before the step and outlives it.
  bool is_made_anew;
  // Where in the model it belongs: a site, a layer's path; for people.
  std::string (*place)(const Trace& trace, const Tenant& tenant);
  LayerId (*layer)(const Trace& trace, const Tenant& tenant);
  // All uses in the step, in any order.
  void (*list_uses)(const ScheduleIndex& index, TenantId tenant, std::vector<TenantUse>& uses);
  // Reports what of the tenant, its stays and their instructions is not as this kind has it; all
  // that the general contract of schedule.h says is checked elsewhere (simulator/hazards).
  void (*check)(const ScheduleIndex& index, TenantId tenant, const ReportFlaw& report);
};

extern const TenantKind kSavedTensor;     // saved_tensor_tenant.cpp
extern const TenantKind kParameter;       // model_state_tenant.cpp
extern const TenantKind kOptimizerState;  // likewise
extern const TenantKind kGradient;        // likewise

// "saved tensor 3 (layers.0.mlp#2)"; for messages.
[[nodiscard]] std::string label(const Trace& trace, const Schedule& schedule, TenantId tenant);

}  // namespace stowage::simulator
