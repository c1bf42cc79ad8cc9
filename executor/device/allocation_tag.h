// Which allocations are the executor's own: a mark on the thread that allocates. It never outlives
// one call of the allocator.
#pragma once

#include <cstdint>

namespace stowage::executor {

// The tag that an allocation of this thread carries now, kStepAllocation outside of any guard.
[[nodiscard]] std::int64_t allocation_tag();

// While it lives, the allocations of this thread carry `tag`.
class AllocationTagGuard {
 public:
  explicit AllocationTagGuard(std::int64_t tag);
  ~AllocationTagGuard();
  AllocationTagGuard(const AllocationTagGuard&) = delete;
  AllocationTagGuard& operator=(const AllocationTagGuard&) = delete;

 private:
  std::int64_t previous_;
};

}  // namespace stowage::executor
