#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "executor/device/cpu_device.h"

namespace stowage::executor {
namespace {

TEST(LiveAllocations, AreListedInOrderOfSerial) {
  const auto device = CpuDevice::create({});
  ASSERT_TRUE(device.ok());
  const std::size_t before = (*device)->live_allocations().size();
  const at::Tensor first = at::empty({100}, at::kByte);
  at::Tensor gone = at::empty({50}, at::kByte);
  const at::Tensor second = (*device)->allocate_buffer(70, 4);
  gone.reset();
  const auto live = (*device)->live_allocations();
  ASSERT_EQ(live.size(), before + 2);
  EXPECT_TRUE(std::is_sorted(live.begin(), live.end(),
                             [](const auto& a, const auto& b) { return a.serial < b.serial; }));
  EXPECT_EQ(live[before].serial, (*device)->allocation_serial(first.const_data_ptr()));
  EXPECT_EQ(live[before].bytes, 100);
  EXPECT_EQ(live[before + 1].serial, (*device)->allocation_serial(second.const_data_ptr()));
  EXPECT_EQ(live[before + 1].bytes, 70);
}

}  // namespace
}  // namespace stowage::executor
