// A Schedule is a plan lowered onto a trace: the op sequence of the planned step, and instructions
// at anchors. The simulator replays it, the executor runs it, the hazard checker proves it. One
// period: the state at its end is the state at its start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/plan.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::simulator {

enum class Pass : std::uint8_t { forward, backward, recompute, optimizer };

// One outermost op of the planned step. With offload alone the rows are the recorded sequence.
struct ScheduleRow {
  OpId op;
  std::int32_t micro_batch = 0;
  Pass pass = Pass::forward;
};

// Events at which a running executor can act without observing every op. Each maps to exactly one
// EventKind of the trace.
enum class AnchorKind : std::uint8_t {
  step_begin,
  step_end,
  pack,
  unpack,
  layer_forward_begin,
  layer_forward_end,
  layer_backward_begin,
  layer_backward_end,
};
inline constexpr std::size_t kAnchorKinds = 8;

// `before`: ahead of the anchor's own action (the pack's or unpack's), `after`: behind it.
enum class Side : std::uint8_t { before, after };

struct Anchor {
  AnchorKind kind = AnchorKind::step_begin;
  std::int32_t ordinal = 0;  // n-th event of this kind in the period
  Side side = Side::after;
  EventId event;  // the same place in Trace::events, for the simulator
};

enum class Action : std::uint8_t {
  start_offload,  // D2H may start once compute has reached the anchor
  release,        // compute waits for the D2H, then the schedule's reference is dropped
  start_reload,   // the buffer is allocated on the compute stream, then H2D may start
  await,          // compute waits for the H2D
  drop,           // the schedule's reference to the reload buffer is dropped
};

// `offload` for start_offload and release, `reload` for the other three.
struct Instruction {
  Action action = Action::start_offload;
  OffloadId offload;
  ReloadId reload;
  Anchor anchor;
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

// Instructions are in execution order: by event, `before` ahead of `after`, then as listed. In
// every schedule: start_offload is at (after) the pack of the offload's first saved tensor; await
// is before the first unpack of its reload; drop is after the last one.
struct Schedule {
  std::vector<ScheduleRow> rows;
  std::vector<Offload> offloads;
  std::vector<Reload> reloads;
  std::vector<Instruction> instructions;
  Bytes host_bytes = 0;  // size of the arena
  // An executor runs it: every pack and unpack goes through its hooks, of kept tensors too. What
  // lower() makes; false for the plain step.
  bool has_hooks = false;
  // For each saved tensor the offload that serves it, or none (kept). Size = Trace::saved.
  std::vector<OffloadId> offload_of;
  // For each unpack the reload that serves it, or none (kept). Size = Trace::unpacks.
  std::vector<ReloadId> reload_of;
};

[[nodiscard]] const char* name_of(AnchorKind value);
[[nodiscard]] const char* name_of(Action value);

}  // namespace stowage::simulator
