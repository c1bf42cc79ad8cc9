// What an op makes, with the ops inside of it.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace stowage::gui {

// By op: it is this one, or inside of it. Cost: O(ops).
[[nodiscard]] std::vector<bool> ops_inside(const Trace& trace, OpId id);

struct OpProducts {
  std::vector<StorageId> kept;  // there when the op ends, largest first
  std::int64_t temporaries = 0;
  Bytes temporary_bytes = 0;
};

// `ops`: ops_inside(). Cost: O(events + storages).
[[nodiscard]] OpProducts products_of(const Trace& trace, OpId id, const std::vector<bool>& ops);

}  // namespace stowage::gui
