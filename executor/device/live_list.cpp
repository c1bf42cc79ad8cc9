#include "executor/device/live_list.h"

#include <algorithm>

namespace stowage::executor {

std::vector<LiveAllocation> in_order_of_serial(const std::vector<Block>& blocks) {
  std::vector<LiveAllocation> live;
  live.reserve(blocks.size());
  for (const Block& block : blocks) live.push_back({block.serial, block.bytes});
  std::sort(live.begin(), live.end(),
            [](const LiveAllocation& a, const LiveAllocation& b) { return a.serial < b.serial; });
  return live;
}

}  // namespace stowage::executor
