// How much memory the machine can still give.
#pragma once

#include "traces/units.h"

namespace stowage::executor {

// Bytes that can be had without swapping, by the kernel's own estimate (MemAvailable), the largest
// Bytes where it gives none. Linux grants more than it has and ends the process later, so whoever
// takes much asks here first.
[[nodiscard]] Bytes available_host_bytes();

}  // namespace stowage::executor
