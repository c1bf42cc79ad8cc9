// What a real caching allocator holds at one moment, as its device tells it.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/units.h"

namespace stowage::simulator {

struct ObservedBlock {
  Bytes address = 0;
  Bytes size = 0;
  bool begins_segment = false;
  bool small = false;  // of the small pool
  bool allocated = false;
  // Of an allocated one that is known; numbers and tags are those of the device's allocations.
  std::int64_t serial = -1;
  Bytes requested = -1;
  std::int64_t tag = -1;
};

struct ObservedAllocator {
  std::vector<ObservedBlock> blocks;  // of one stream, in order of address
  Bytes room = 0;                     // may be taken from the driver without giving anything back
};

}  // namespace stowage::simulator
