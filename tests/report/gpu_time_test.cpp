#include "report/answers/gpu_time.h"

#include <gtest/gtest.h>

#include "tests/support/small_trace.h"

namespace stowage::report {
namespace {

void add_kernel(Trace& trace, OpId op, Nanoseconds duration) {
  trace.gpu.kind.push_back(GpuKind::kernel);
  trace.gpu.op.push_back(op);
  trace.gpu.duration.push_back(duration);
}

TEST(GpuTime, IsSummedUpByTheOutermostOp) {
  Trace trace = testing::small_trace();
  EXPECT_TRUE(gpu_time_by_op(trace).empty());
  const OpId outer(0);
  OpId other;
  for (std::size_t i = 1; i < trace.ops.size() && !other.valid(); ++i) {
    if (trace.ops.name[i] != trace.ops.name[0]) other = OpId(i);
  }
  ASSERT_TRUE(other.valid());
  trace.ops.parent[other.index()] = OpId();
  add_kernel(trace, outer, 10);
  add_kernel(trace, other, 25);
  add_kernel(trace, OpId(), 5);
  // A nested op's kernels are its outermost op's.
  const OpId nested(trace.ops.size() - 1);
  ASSERT_NE(nested, other);
  trace.ops.parent[nested.index()] = outer;
  add_kernel(trace, nested, 7);
  const std::vector<GpuOpRow> rows = gpu_time_by_op(trace);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, trace.string(trace.ops.name[other.index()]));
  EXPECT_EQ(rows[0].duration, 25);
  EXPECT_EQ(rows[1].name, trace.string(trace.ops.name[0]));
  EXPECT_EQ(rows[1].duration, 17);
  EXPECT_EQ(rows[1].activities, 2);
  EXPECT_EQ(rows[2].name, "(outside of ops)");
}

}  // namespace
}  // namespace stowage::report
