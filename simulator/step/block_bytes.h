// The smallest block of PyTorch's caching allocator that can hold a request.
#pragma once

#include "traces/units.h"

namespace stowage::simulator {

inline constexpr Bytes kBlockGranule = 512;

[[nodiscard]] constexpr Bytes block_bytes(Bytes requested) {
  return (requested + kBlockGranule - 1) / kBlockGranule * kBlockGranule;
}

}  // namespace stowage::simulator
