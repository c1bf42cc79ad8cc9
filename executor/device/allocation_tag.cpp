#include "executor/device/allocation_tag.h"

#include "executor/device/device.h"

namespace stowage::executor {

namespace {
thread_local std::int64_t t_tag = kStepAllocation;
}  // namespace

std::int64_t allocation_tag() {
  return t_tag;
}

AllocationTagGuard::AllocationTagGuard(std::int64_t tag) : previous_(t_tag) {
  t_tag = tag;
}
AllocationTagGuard::~AllocationTagGuard() {
  t_tag = previous_;
}

}  // namespace stowage::executor
