#include "report/less_memory.h"

#include <gtest/gtest.h>

namespace stowage::report {
namespace {

simulator::ReplayResult step(Bytes peak, Nanoseconds step_ns) {
  simulator::ReplayResult result;
  result.peak_requested = peak;
  result.step_ns = step_ns;
  return result;
}

TEST(LessMemory, SaysWhatItCosts) {
  const simulator::ReplayResult resident = step(63'000'000'000, 2'400'000'000);
  EXPECT_EQ(less_memory(resident, step(39'900'000'000, 2'412'000'000), ByteUnits::decimal),
            "23.1 GB less cost 12.0 ms (+0.5 %)");
  EXPECT_EQ(less_memory(resident, step(39'900'000'000, 2'400'000'000), ByteUnits::decimal),
            "23.1 GB less cost no time");
  EXPECT_EQ(less_memory(resident, step(39'900'000'000, 2'390'000'000), ByteUnits::binary),
            "21.5 GiB less cost no time");
  EXPECT_EQ(
      less_memory(resident, step(39'900'000'000, 2'400'000'000), ByteUnits::decimal, "than it"),
      "23.1 GB less than it cost no time");
  EXPECT_EQ(less_memory(resident, step(63'000'000'000, 2'500'000'000), ByteUnits::decimal), "");
}

}  // namespace
}  // namespace stowage::report
