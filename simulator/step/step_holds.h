// When the model itself lets go of the storages and unpacked tensors of a composed step.
#pragma once

#include "simulator/step/step_layout.h"
#include "simulator/step/step_storages.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Where a storage of the step was recorded. The layout must be laid out.
[[nodiscard]] Origin<StorageId> origin_of(const StepLayout& layout, StorageId storage);

// Writes natural_free_event of a row of storages, released_event of a row of unpacks; what else the
// step has of events, storages and unpacks is there. A death behind an event that is in the step
// stands behind that event; behind one that is not, at the last event ahead of it that is (of the
// same instance), but behind the alloc or the unpack. A recorded storage that pieces of other
// passes stand for lives until the last of them that is in the step, or the recording, says so.
// What dies in a span that is left out, and that no event of the step frees, outlives the step.
// Cost: O(log pieces), of a shared storage for each that stands for it.
void find_hold(const StepLayout& layout, const StepStorages& storages, StorageId row, Trace& trace);
void find_hold(const StepLayout& layout, UnpackId row, Trace& trace);
// Those of all rows.
void find_holds(const StepLayout& layout, const StepStorages& storages, Trace& trace);

}  // namespace stowage::simulator
