// What places and the sizes that count are multiples of.
#pragma once

#include "traces/units.h"

namespace stowage::simulator {

// Kernels are chosen by alignment.
inline constexpr Bytes kPlacementAlignment = 512;

[[nodiscard]] constexpr Bytes placed_bytes(Bytes bytes) {
  return (bytes + kPlacementAlignment - 1) / kPlacementAlignment * kPlacementAlignment;
}

}  // namespace stowage::simulator
