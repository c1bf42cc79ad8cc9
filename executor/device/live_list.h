// The list behind Device::live_allocations().
#pragma once

#include <vector>

#include "executor/device/block_table.h"
#include "executor/device/device.h"

namespace stowage::executor {

// The blocks of a table in order of serial. Cost: O(n log n).
[[nodiscard]] std::vector<LiveAllocation> in_order_of_serial(const std::vector<Block>& blocks);

}  // namespace stowage::executor
