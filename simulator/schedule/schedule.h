// A Schedule is a plan's movement lowered onto a step: what may leave the device and come back
// (tenants), when it is there (stays), and the instructions at the step's anchors that see to it.
// The simulator replays it, the executor runs it, the hazard checker proves it. One period: the
// state at its end is the state at its start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/anchor.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::simulator {

struct TenantKind;  // simulator/schedule/tenant_kind.h

enum class Action : std::uint8_t {
  load,   // a buffer is allocated on the compute stream, then the copy from the home may start
  await,  // compute waits for the load (of this period or of the one before)
  store,  // the copy to the home may start once compute has reached the anchor
  evict,  // compute waits for the store if there is one, then the schedule's reference is dropped
  // Of a gradient's stay: the host updates its parameter once the stay's store is done, one
  // parameter after the other in order of instructions. It reads the gradient's home and writes
  // those of the parameter and of its state (Tenant::is_updated_at_home). The parameter's next load
  // waits for it, and so does the step's end.
  update,
};
inline constexpr std::size_t kActions = 5;

struct Instruction {
  Action action = Action::load;
  StayId stay;
  Anchor anchor;
  bool operator==(const Instruction&) const = default;
};

inline constexpr Bytes kHostSlotAlignment = 512;

// Bytes that may be away from the device: a range of one storage, with a home on the host.
struct Tenant {
  const TenantKind* kind = nullptr;  // never null in a schedule
  StorageId storage;
  Bytes begin = 0;        // first byte of the storage that moves
  Bytes bytes = 0;        // length; 0 only for saved views without elements
  Bytes host_offset = 0;  // its slot in the arena, aligned to kHostSlotAlignment
  // The bytes are at home from the step's begin on, in a slot of their own. Then all of the storage
  // moves, whoever holds it: it is on the device in its stays alone. Else the slot is the tenant's
  // from its first store to its last stay's end.
  // Such a storage existed before the step and outlives it, or it is made anew in each step
  // (TenantKind::is_made_anew).
  bool has_own_home = false;
  std::vector<SavedId> saved;  // the saved tensors that it serves, in pack order
  // Of what is made anew in each step: the storage that the step before left and this one frees,
  // ahead of that. It is at home: its memory is not on the device at any time. None for a gradient
  // of an update in backward that the host does: it goes behind that, and no step leaves one.
  StorageId previous{};
  // A parameter that the host updates, or a piece of its state, which is on the device at no time:
  // its home has other bytes behind the update (Action::update of its gradient), and no stay is
  // there across that.
  bool is_updated_at_home = false;

  // Which storage of the recorded step has its bytes at the step's begin, where it has a home of
  // its own; none: it has none there.
  [[nodiscard]] StorageId at_begin() const;
  bool operator==(const Tenant&) const = default;
};

// One time on the device. A made one begins with the op that makes the bytes and is the storage
// itself; every other one begins with a load, and is a buffer of Tenant::bytes. It ends behind its
// evict, or when the model itself lets go, if that is later (simulator/step/lifetimes.h).
struct Stay {
  TenantId tenant;
  bool is_made = false;
  // Its bytes may be newer than the home's when it ends: there is a store, ahead of its evict.
  bool is_stored = false;
  // It goes on over the step's end: its load stands behind its evict in the period. Its await is
  // ahead of the step's end or of the first use behind the step's begin. Ahead of the first period
  // such stays are loaded, in order of rows, before step_begin.
  bool wraps = false;
  CopyMode load_mode = CopyMode::lane;
  CopyMode store_mode = CopyMode::lane;
  // What it is for, where the kind says so (of a saved tensor: the unpacks, in order). Stays of one
  // tenant that serve unpacks may overlap; others do not.
  std::vector<UnpackId> unpacks;
  // It does not happen in this period: no instruction is about it, it serves nothing. Only in a
  // period that skips the update (simulator/lowering/skipped_update.h), which keeps the numbers of
  // the stays of the one that takes it.
  bool is_left_out = false;
  bool operator==(const Stay&) const = default;
};

// Instructions are in execution order: by event, `before` ahead of `after`, then as listed. What
// each kind of tenant asks of its stays beyond what is said here: tenant_kind.h.
struct Schedule {
  std::vector<Tenant> tenants;
  std::vector<Stay> stays;
  std::vector<Instruction> instructions;
  Bytes host_bytes = 0;  // size of the arena
  // An executor runs it: every pack and unpack goes through its hooks, of kept tensors too. What
  // lower() makes; false for the plain step.
  bool has_hooks = false;
  // The memory that its allocations are in. That changes no instruction.
  PlacementMode placement = PlacementMode::caching;
  // For each saved tensor the tenant that serves it, or none (kept). Size = Trace::saved.
  std::vector<TenantId> tenant_of;
  // For each unpack the stay that serves it, or none (kept). Size = Trace::unpacks.
  std::vector<StayId> stay_of;

  [[nodiscard]] const Tenant& tenant(StayId stay) const {
    return tenants[stays[stay.index()].tenant.index()];
  }
  bool operator==(const Schedule&) const = default;
};

[[nodiscard]] const char* name_of(Action value);

}  // namespace stowage::simulator
