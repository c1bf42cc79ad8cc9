// Which storages move: the decisions of all saved tensors of a storage put together. A storage
// leaves only when every one of them says so in the same way.
#pragma once

#include <vector>

#include "simulator/lowering/lowering.h"
#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// What moves, before anyone said when. Offloads in order of their first pack, reloads in order of
// their first unpack.
struct OffloadGroups {
  std::vector<Offload> offloads;
  std::vector<Reload> reloads;
  std::vector<LoweringNote> notes;  // in pack order
};

// Kept with a note: no storage, a storage of another device, a saved tensor of the same storage
// that stays or moves in another way, views saved at different versions, a storage that is saved
// again after it was unpacked (backward of backward), a storage that is written between its first
// pack and its last unpack, one of `streamed` (by row of storages; empty = none).
// Cost: O(saved log saved + unpacks log unpacks).
[[nodiscard]] OffloadGroups group_offloads(const StepIndex& index, const Decisions& decisions,
                                           const std::vector<bool>& streamed = {});

}  // namespace stowage::simulator
