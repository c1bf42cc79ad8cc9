// Rows of a trace by what they belong to. Cost of each: O(table).
#pragma once

#include <cstdint>

#include "simulator/step/grouped.h"
#include "traces/trace.h"

namespace stowage::simulator {

[[nodiscard]] Grouped<UnpackId> unpacks_by_saved(const Trace& trace);
// Of a device's storages.
[[nodiscard]] Grouped<SavedId> saved_by_storage(const Trace& trace);
// Rows of uses; by storage those of a device's.
[[nodiscard]] Grouped<std::uint32_t> uses_by_op(const Trace& trace);
[[nodiscard]] Grouped<std::uint32_t> uses_by_storage(const Trace& trace);

}  // namespace stowage::simulator
