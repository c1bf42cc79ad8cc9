// A Schedule is a plan lowered onto a step: instructions at its anchors. The simulator replays it,
// the executor runs it, the hazard checker proves it. One period: the state at its end is the state
// at its start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/anchor.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::simulator {

enum class Action : std::uint8_t {
  start_offload,  // D2H may start once compute has reached the anchor
  release,        // compute waits for the D2H, then the schedule's reference is dropped
  start_reload,   // the buffer is allocated on the compute stream, then H2D may start
  await,          // compute waits for the H2D
  drop,           // the schedule's reference to the reload buffer is dropped
  start_load,   // a buffer for the parameter is allocated on the compute stream, then H2D may start
  await_load,   // compute waits for the H2D (of this period or of the one before)
  start_store,  // D2H of the parameter may start once compute has reached the anchor
  evict,        // compute waits for the D2H if there is one, then the buffer goes
};

// Whether the action is one of a residency.
[[nodiscard]] constexpr bool moves_parameter(Action action) {
  return action >= Action::start_load;
}

// `offload` for start_offload and release, `reload` for start_reload, await and drop, `residency`
// for the others.
struct Instruction {
  Action action = Action::start_offload;
  OffloadId offload;
  ReloadId reload;
  Anchor anchor;
  ResidencyId residency{};
};

// One copy out of one storage's byte range into one host slot.
struct Offload {
  StorageId storage;
  std::vector<SavedId> saved;  // the saved tensors that this copy serves, in pack order
  Bytes begin = 0;             // first byte of the storage that is copied
  Bytes bytes = 0;             // length; 0 only for saved views without elements
  Bytes host_offset = 0;       // slot in the arena, aligned to kHostSlotAlignment
  CopyMode copy_out = CopyMode::lane;
};
inline constexpr Bytes kHostSlotAlignment = 512;

// One copy back into one device buffer of `offload.bytes`; serves these unpacks, in order, and
// lives from its start_reload to the last of their releases (Unpacks::released_event).
struct Reload {
  OffloadId offload;
  std::vector<UnpackId> unpacks;
  CopyMode copy_in = CopyMode::lane;
};

// A parameter that is not on the device all the time. Its bytes have a slot of their own in the
// host arena, which no other slot shares: the parameter's home.
struct StreamedParameter {
  StorageId storage;  // existed before the step and outlives it, device 0
  Bytes bytes = 0;    // all of the storage
  Bytes host_offset = 0;
};

// One stay of a parameter on the device, from start_load to evict. Stays of one parameter do not
// overlap, and whatever touches the parameter lies between await_load and evict of one of them.
struct Residency {
  ParameterId parameter;
  // It goes on over the step's end: its start_load stands behind its evict in the period. Its
  // await_load is ahead of the step's end or of the first touch behind the step's begin. Ahead of
  // the first period such residencies are loaded, in order of rows, before step_begin.
  bool wraps = false;
  // The optimizer writes the parameter in this stay: start_store stands behind the last write.
  // There is none in other stays.
  bool written = false;
};

// Instructions are in execution order: by event, `before` ahead of `after`, then as listed. In
// every schedule: start_offload is at (after) the pack of the offload's first saved tensor; await
// is before the first unpack of its reload; drop is after the last one.
struct Schedule {
  std::vector<Offload> offloads;
  std::vector<Reload> reloads;
  std::vector<StreamedParameter> parameters;
  std::vector<Residency> residencies;
  std::vector<Instruction> instructions;
  Bytes host_bytes = 0;  // size of the arena: the parameters' slots, then the offloads'
  // An executor runs it: every pack and unpack goes through its hooks, of kept tensors too. What
  // lower() makes; false for the plain step.
  bool has_hooks = false;
  // For each saved tensor the offload that serves it, or none (kept). Size = Trace::saved.
  std::vector<OffloadId> offload_of;
  // For each unpack the reload that serves it, or none (kept). Size = Trace::unpacks.
  std::vector<ReloadId> reload_of;
};

[[nodiscard]] const char* name_of(Action value);

}  // namespace stowage::simulator
