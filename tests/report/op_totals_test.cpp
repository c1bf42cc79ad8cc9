#include "report/op_totals.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/small_trace.h"

namespace stowage::report {
namespace {

void add_kernel(Trace& trace, OpId op, Nanoseconds duration) {
  trace.gpu.kind.push_back(GpuKind::kernel);
  trace.gpu.op.push_back(op);
  trace.gpu.duration.push_back(duration);
}

// Of a CPU's trace the ops' own time, and what they make.
TEST(OpTotals, OfACpuAreTheOpsOwnTime) {
  const Trace trace = testing::small_trace(3);
  std::int64_t calls = 0;
  Nanoseconds time = 0;
  Bytes made = 0;
  Nanoseconds before = std::numeric_limits<Nanoseconds>::max();
  for (const OpTotals& row : op_totals(trace)) {
    EXPECT_LE(row.time, before) << "the longest first";
    before = row.time;
    EXPECT_EQ(row.activities, 0);
    calls += row.calls;
    time += row.time;
    made += row.made;
  }
  std::int64_t outermost = 0;
  Nanoseconds whole = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.parent[i].valid()) continue;
    ++outermost;
    whole += trace.ops.duration[i];
  }
  EXPECT_EQ(calls, outermost);
  EXPECT_EQ(time, whole);
  // small_trace.h: in a layer an activation, an output and a gradient; the loss; in backward what
  // is passed from layer to layer.
  EXPECT_EQ(made, 3 * (2'000'000 + 500'000 + 400'000) + 8'000 + 3 * 2'000'000);
}

TEST(OpTotals, OfAGpuAreSummedUpByTheOutermostOp) {
  Trace trace = testing::small_trace();
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
  const std::vector<OpTotals> rows = op_totals(trace);
  ASSERT_GE(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, trace.string(trace.ops.name[other.index()]));
  EXPECT_EQ(rows[0].time, 25);
  EXPECT_EQ(rows[1].name, trace.string(trace.ops.name[0]));
  EXPECT_EQ(rows[1].time, 17);
  EXPECT_EQ(rows[1].activities, 2);
  EXPECT_EQ(rows[2].name, "(outside of ops)");
  EXPECT_EQ(rows[2].time, 5);
  EXPECT_EQ(rows[2].calls, 0);
  for (std::size_t i = 3; i < rows.size(); ++i) EXPECT_EQ(rows[i].time, 0) << rows[i].name;
}

}  // namespace
}  // namespace stowage::report
