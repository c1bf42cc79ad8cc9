// Saved tensors that leave: the decisions of all saved tensors of a storage put together into
// tenants and stays. A storage leaves only when every one of them says so in the same way.
#pragma once

#include <vector>

#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Tenants in order of their first pack, each with its made stay in the same row; behind those the
// loaded stays in order of their first unpack; notes in pack order. Loads are open, and the made
// stays end anywhere up to the tenant's first unpack or the next write into its storage.
//
// Kept with a note: no storage, a storage of another device, a saved tensor of the same storage
// that stays or moves in another way, views saved at different versions, a storage that is saved
// again after it was unpacked (backward of backward), a storage that is written between its first
// pack and its last unpack, one of `streamed` (by row of storages; empty = none).
// Cost: O(saved log saved + unpacks log unpacks).
[[nodiscard]] Movement group_offloads(const StepIndex& index, const Decisions& decisions,
                                      const std::vector<bool>& streamed = {});

}  // namespace stowage::simulator
