// OwnSegments: what the caching allocator takes from the driver for blocks that lie in segments
// with nothing else in them: small blocks share segments of 2 MiB, those below 10 MiB segments of
// 20 MiB, larger ones have one each in multiples of 2 MiB (c10::cuda::CUDACachingAllocator).
#pragma once

#include "traces/units.h"

namespace stowage::simulator {

class OwnSegments {
 public:
  // Of a block, as the allocator rounds it (block_bytes()).
  void add(Bytes block);
  [[nodiscard]] Bytes bytes() const;

 private:
  Bytes small_ = 0;
  Bytes middle_ = 0;
  Bytes large_ = 0;
};

}  // namespace stowage::simulator
