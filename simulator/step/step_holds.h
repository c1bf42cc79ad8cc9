// When the model itself lets go of the storages and unpacked tensors of a composed step.
#pragma once

#include "simulator/step/step_layout.h"
#include "simulator/step/step_storages.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Where a storage of the step was recorded. The layout must be laid out.
[[nodiscard]] Origin<StorageId> origin_of(const StepLayout& layout, StorageId storage);

// Writes storages.natural_free_event and unpacks.released_event of `trace`, whose other columns of
// storages and unpacks, and events, are there. A death behind an event that is in the step stands
// behind that event; behind one that is not, at the last event ahead of it that is (of the same
// instance), but behind the alloc or the unpack. A recorded storage that pieces of other passes
// stand for lives until the last of them that is in the step, or the recording, says so. Cost:
// O((storages + unpacks) log pieces).
void find_holds(const StepLayout& layout, const StepStorages& storages, Trace& trace);

}  // namespace stowage::simulator
