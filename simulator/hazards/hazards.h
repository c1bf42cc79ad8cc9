// Hazard check: a schedule may only run when every pair of conflicting accesses is ordered by
// program order, stream order or an event edge. Checked over two consecutive periods, so that
// what crosses the step's end is covered.
#pragma once

#include <string>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

enum class HazardKind : std::uint8_t {
  reload_before_offload_finished,
  host_slot_overwritten,      // rewritten before its reload ended
  buffer_used_before_reload,  // an unpack that does not wait for its H2D
  freed_while_copied,         // device bytes given up while a copy still reads or writes them
  written_while_copied,       // an op writes the storage while the copy out reads it
  parameter_absent,           // an op touches a parameter that is not (yet) on the device
  load_before_store_finished,
  update_lost,  // the optimizer writes a parameter behind its store, or without one
  malformed,    // an instruction is missing, doubled or out of order
};

struct Hazard {
  HazardKind kind = HazardKind::malformed;
  OffloadId first;  // the pair, where there is one
  OffloadId second;
  EventId event;            // where the second access happens
  std::string text;         // names both accesses, by site, slot and event
  ParameterId parameter{};  // the one concerned; then `first` and `second` are none
};

[[nodiscard]] const char* name_of(HazardKind value);

// All hazards, in order of event; empty = proven safe.
[[nodiscard]] std::vector<Hazard> find_hazards(const StepIndex& index, const Schedule& schedule);

}  // namespace stowage::simulator
