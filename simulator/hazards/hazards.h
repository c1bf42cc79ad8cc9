// Hazard check: a schedule may only run when every pair of conflicting accesses is ordered by
// program order, stream order or an event edge. Checked over two consecutive periods, so that
// what crosses the step's end is covered.
#pragma once

#include <string>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

enum class HazardKind : std::uint8_t {
  load_before_store_finished,
  host_slot_overwritten,  // rewritten before its last load ended
  used_while_away,        // without being on the device, or without waiting for its load
  freed_while_copied,     // device bytes given up while a copy still reads or writes them
  written_while_copied,   // an op writes the storage while the copy out reads it
  update_lost,            // written behind the store, or without one
  memory_shared,          // planned memory: bytes are taken that something else may still have
  malformed,              // an instruction is missing, doubled or out of order
};

struct Hazard {
  HazardKind kind = HazardKind::malformed;
  TenantId first;  // the pair, where there is one
  TenantId second;
  EventId event;     // where the second access happens
  std::string text;  // names both accesses, by place in the model, slot and event
};

[[nodiscard]] const char* name_of(HazardKind value);

// All hazards, in order of event; empty = proven safe. Cost: O(instructions + uses, sorted), and
// for each pair of tenants that share host bytes the stays of both.
[[nodiscard]] std::vector<Hazard> find_hazards(const StepIndex& index, const Schedule& schedule);

// The same, and where there is none, those of planned memory: ranges that share bytes are never
// there at once. `live`: of this schedule. Cost: also O(mapped pages log).
[[nodiscard]] std::vector<Hazard> find_hazards(const StepIndex& index, const Schedule& schedule,
                                               const LiveRanges& live,
                                               const DevicePlacement& placement);

}  // namespace stowage::simulator
