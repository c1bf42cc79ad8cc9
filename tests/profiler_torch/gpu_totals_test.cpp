#include "cli/torch/gpu_totals.h"

#include <gtest/gtest.h>

namespace stowage::cli {
namespace {

TEST(GpuTotals, KernelsOfNoOpAreLostAndCopiesAreNot) {
  Trace trace;
  const auto add = [&](GpuKind kind, OpId op, Nanoseconds duration) {
    trace.gpu.kind.push_back(kind);
    trace.gpu.op.push_back(op);
    trace.gpu.duration.push_back(duration);
    trace.gpu.name.push_back(StringId(0));
  };
  add(GpuKind::kernel, OpId(0), 900);
  add(GpuKind::memcpy, OpId(), 60);
  EXPECT_DOUBLE_EQ(gpu_totals(trace).attributed, 1);
  add(GpuKind::kernel, OpId(), 40);
  EXPECT_DOUBLE_EQ(gpu_totals(trace).attributed, 0.96);
  trace.quality.unattributed_ns = 40;  // the same kernel, as the recording counts it
  EXPECT_DOUBLE_EQ(gpu_totals(trace).attributed, 0.96);
  trace.quality.unattributed_ns = 1040;  // and one that is not in the table
  EXPECT_DOUBLE_EQ(gpu_totals(trace).attributed, 1 - 1040.0 / 2000);
}

TEST(GpuTotals, WarnOfATimingPassThatIsMoreThanTenPercentSlower) {
  Trace trace;
  EXPECT_EQ(timing_warning(gpu_totals(trace)), "");
  trace.overhead.clean.step_ns = 1000;
  trace.overhead.timing.step_ns = 1090;
  EXPECT_EQ(timing_warning(gpu_totals(trace)), "");
  trace.overhead.timing.step_ns = 1130;
  EXPECT_NE(timing_warning(gpu_totals(trace)).find("13 % slower"), std::string::npos);
}

}  // namespace
}  // namespace stowage::cli
