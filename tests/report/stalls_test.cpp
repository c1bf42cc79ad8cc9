// Why compute stalls: micro traces worked out by hand, and invariants on random plans. The link
// does 1 byte a nanosecond each way, without latency.
#include "report/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "report/transfers.h"
#include "tests/report/report_case.h"

namespace stowage::report_tests {
namespace {

using report::Lateness;
using report::RemedyKind;
using report::StallRow;
using simulator::CopyMode;
using ::testing::HasSubstr;

const report::Remedy* find(const StallRow& row, RemedyKind kind) {
  for (const report::Remedy& remedy : row.remedies) {
    if (remedy.kind == kind) return &remedy;
  }
  return nullptr;
}

// Two saved tensors of 100 B in layer a at time 0; both are out at 200, and layer b at 500 is the
// first anchor at which they can be released. Backward of a begins at 1000, needs the first at 1010
// and the second 10 ns later.
Trace two_saved() {
  testing::MicroTrace t;
  t.begin_layer("a");
  const auto a = t.alloc(100);
  const auto sa = t.pack(a);
  const auto b = t.alloc(100);
  const auto sb = t.pack(b);
  t.let_go(a);
  t.let_go(b);
  t.end_layer("a");
  t.run(500).begin_layer("b");
  t.end_layer("b");
  t.run(500).backward();
  t.begin_layer_backward("a");
  t.run(10);
  t.drop(t.unpack(sa));
  t.free(a);
  t.run(10);
  t.drop(t.unpack(sb));
  t.free(b);
  t.end_layer_backward("a");
  return t.finish();
}

simulator::Plan both_back_at_begin() {
  simulator::Plan plan;
  plan.saved.push_back(offload("a#*"));
  plan.saved[0].reload = reload_at_backward("a");
  return plan;
}

// Both reloads are ready at 1000. The first copies from 1000 to 1100, is needed at 1010: 90 ns. The
// second queues 100 ns, copies until 1200, is needed at 1110: 90 ns, all of it the queue's.
TEST(Stalls, OneStartedLateTheNextQueuedBehindIt) {
  const HandCase c(two_saved(), both_back_at_begin());
  ASSERT_EQ(c.result.stall_ns, 180);
  const auto rows = report::explain_stalls(c.index, c.schedule, c.result, c.detail);
  ASSERT_EQ(rows.size(), 2U);
  const StallRow& first = rows[0];
  EXPECT_EQ(first.site, "a#0");
  EXPECT_TRUE(first.copy_back);
  EXPECT_EQ(first.start, 1010);
  EXPECT_EQ(first.duration, 90);
  EXPECT_EQ(first.ready, 1000);
  EXPECT_EQ(first.copy_start, 1000);
  EXPECT_EQ(first.copy_end, 1100);
  EXPECT_EQ(first.earliest, 500);
  EXPECT_EQ(first.copies_ahead, 0);
  EXPECT_EQ(first.why, Lateness::started_late);
  const report::Remedy* earlier = find(first, RemedyKind::start_earlier);
  ASSERT_NE(earlier, nullptr);
  EXPECT_EQ(earlier->earlier, 90);
  EXPECT_LE(c.detail.time[earlier->start_at.index()], 910);
  EXPECT_THAT(earlier->text, HasSubstr("start it 90 ns earlier"));
  // 100 B in the 10 ns that there are.
  const report::Remedy* link = find(first, RemedyKind::faster_link);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->bytes_per_second, 10'000'000'000);
  EXPECT_EQ(link->text, "a link that moves 10 GB/s here (it moved 1 GB/s)");
  const report::Remedy* keep = find(first, RemedyKind::keep);
  ASSERT_NE(keep, nullptr);
  EXPECT_EQ(keep->text, "keep a#0 on the device (100 B)");

  const StallRow& second = rows[1];
  EXPECT_EQ(second.site, "a#1");
  EXPECT_EQ(second.start, 1110);
  EXPECT_EQ(second.duration, 90);
  EXPECT_EQ(second.queued(), 100);
  EXPECT_EQ(second.copies_ahead, 1);
  EXPECT_EQ(second.bytes_ahead, 100);
  EXPECT_EQ(second.why, Lateness::lane_busy);
  EXPECT_EQ(second.why_text, "it queued 100 ns behind 1 copy (100 B)");
  ASSERT_NE(find(second, RemedyKind::start_earlier), nullptr);
  EXPECT_THAT(find(second, RemedyKind::start_earlier)->text,
              HasSubstr("start it and the 1 copy ahead of it 90 ns earlier"));
  // 200 B from 1000 to 1110.
  EXPECT_EQ(find(second, RemedyKind::faster_link)->bytes_per_second, 1'818'181'818);
}

// What is proposed does remove the stalls here: 10 GB/s for the first leaves nothing of both.
TEST(Stalls, TheProposedLinkRemovesThem) {
  Trace trace = two_saved();
  trace.calibration.h2d = testing::flat_link(10'000'000'000);
  trace.calibration.d2h = testing::flat_link(10'000'000'000);
  const HandCase c(std::move(trace), both_back_at_begin());
  EXPECT_EQ(c.result.stall_ns, 0);
  EXPECT_TRUE(report::explain_stalls(c.index, c.schedule, c.result, c.detail).empty());
}

// The same with 50 B of budget: nothing but the buffer of 100 B is there ahead of 1000.
TEST(Stalls, ABudgetWithoutRoomIsTheReason) {
  const HandCase c(two_saved(), both_back_at_begin());
  const auto rows = report::explain_stalls(c.index, c.schedule, c.result, c.detail, Bytes{50});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].why, Lateness::no_room);
  EXPECT_THAT(rows[0].why_text, HasSubstr("over the budget"));
  const auto roomy = report::explain_stalls(c.index, c.schedule, c.result, c.detail, Bytes{1000});
  EXPECT_EQ(roomy[0].why, Lateness::started_late);
}

// Released at its pack: the copy of 100 B has no time at all. A copy out cannot start earlier.
TEST(Stalls, AReleaseAtThePackIsTooEarlyForTheCopy) {
  simulator::Plan plan;
  plan.saved.push_back(offload("a#0"));
  plan.saved[0].release.kind = simulator::ReleasePoint::Kind::pack;
  const HandCase c(two_saved(), plan);
  const auto rows = report::explain_stalls(c.index, c.schedule, c.result, c.detail);
  ASSERT_FALSE(rows.empty());
  const StallRow& row = rows[0];
  EXPECT_FALSE(row.copy_back);
  EXPECT_EQ(row.duration, 100);
  EXPECT_EQ(row.why, Lateness::too_large);
  EXPECT_EQ(find(row, RemedyKind::start_earlier), nullptr);
  EXPECT_EQ(find(row, RemedyKind::faster_link), nullptr);  // no link does it in no time
  EXPECT_NE(find(row, RemedyKind::keep), nullptr);
}

// On the compute stream a copy takes as long as it takes.
TEST(Stalls, ACopyOnTheComputeStreamIsInLine) {
  simulator::Plan plan = both_back_at_begin();
  plan.saved[0].copy_in = CopyMode::compute;
  const HandCase c(two_saved(), plan);
  const auto rows = report::explain_stalls(c.index, c.schedule, c.result, c.detail);
  ASSERT_EQ(rows.size(), 2U);
  for (const StallRow& row : rows) {
    EXPECT_EQ(row.why, Lateness::in_line);
    EXPECT_EQ(row.duration, 100);
    EXPECT_NE(find(row, RemedyKind::use_lane), nullptr);
  }
}

TEST(Stalls, AddUpAndBelongToTheirTransfersOnRandomPlans) {
  std::map<Lateness, int> seen;
  int parameters = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const auto rows =
        report::explain_stalls(c.index, c.schedule, c.result, c.detail, c.result.peak_requested);
    ASSERT_EQ(rows.size(), c.result.stalls.size());
    Nanoseconds sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const StallRow& row = rows[i];
      sum += row.duration;
      ++seen[row.why];
      parameters += c.schedule.tenant(row.stay).has_own_home;
      if (i > 0) {
        ASSERT_LE(row.duration, rows[i - 1].duration);
      }
      const auto& transfer = c.detail.transfers[static_cast<std::size_t>(row.transfer)];
      const auto& stall = c.result.stalls[static_cast<std::size_t>(row.stall)];
      ASSERT_EQ(transfer.stay, stall.stay);
      ASSERT_EQ(transfer.is_store, stall.is_store);
      const bool in_line =
          report::mode_of_copy(c.schedule, row.stay, !row.copy_back) != CopyMode::lane;
      // Compute goes on when the copy is done; where it waits for a lane it hears of that later.
      const Nanoseconds handover = c.index.trace().calibration.handover_ns;
      const bool at_the_end = stall.event.index() + 1 == c.index.event_count();
      const Nanoseconds late = row.start + row.duration - row.copy_end;
      ASSERT_TRUE(late == (in_line ? 0 : handover - handover / 2) || (at_the_end && late == 0));
      ASSERT_LE(row.earliest, row.ready);
      ASSERT_LE(row.ready, row.copy_start);
      ASSERT_EQ(row.why == Lateness::in_line, in_line);
      if (row.why == Lateness::lane_busy) {
        ASSERT_GT(row.copies_ahead, 0);
      }
      ASSERT_FALSE(row.why_text.empty());
      ASSERT_NE(find(row, RemedyKind::keep), nullptr);
    }
    ASSERT_EQ(sum, c.result.stall_ns);
  }
  for (const Lateness each : {Lateness::lane_busy, Lateness::started_late, Lateness::no_room,
                              Lateness::too_large, Lateness::in_line}) {
    EXPECT_GE(seen[each], 5) << report::name_of(each);
  }
  EXPECT_GE(parameters, 20);
}

}  // namespace
}  // namespace stowage::report_tests
