// How long the host takes to update a parameter: its bytes at one rate.
#pragma once

#include "traces/units.h"

namespace stowage::simulator {

// Where no trace says it: of a mebibyte of parameter, gradient and state.
inline constexpr Nanoseconds kHostUpdateNsPerMib = 1'000'000;

// Of an update that reads and writes so many bytes. Rounds up; 0 for 0 bytes.
[[nodiscard]] constexpr Nanoseconds host_update_ns(Bytes bytes) {
  constexpr Bytes kMib = Bytes{1} << 20;
  return bytes / kMib * kHostUpdateNsPerMib +
         (bytes % kMib * kHostUpdateNsPerMib + kMib - 1) / kMib;
}

}  // namespace stowage::simulator
