// Where the instructions stand that follow from what moves alone.
#pragma once

#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Behind the pack of the offload's first saved tensor.
[[nodiscard]] Place start_of(const Trace& trace, const Offload& offload);
// Ahead of the first unpack; where a reload on demand starts and where every reload is awaited.
[[nodiscard]] Place await_of(const Trace& trace, const Reload& reload);
// Behind the last unpack.
[[nodiscard]] Place drop_of(const Trace& trace, const Reload& reload);

}  // namespace stowage::simulator
