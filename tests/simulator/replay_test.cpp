#include "simulator/replay/replay.h"

#include <gtest/gtest.h>

#include "simulator/lowering/lowering.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// One activation of 1000 bytes (1000 ns each way): packed at 100, unpacked at 300, then 400 ns.
Trace one_tensor() {
  MicroTrace t;
  t.run(100);
  const auto a = t.alloc(1000);
  const auto s = t.pack(a);
  t.let_go(a);
  t.run(100).backward();
  t.run(100).unpack(s);
  t.free(a);
  t.run(400);
  return t.finish();
}

ReplayResult with_modes(const Trace& trace, CopyMode out, CopyMode in,
                        ReplayDetail* detail = nullptr) {
  const StepIndex index(trace);
  Decisions d = testing::offload_all(trace);
  d.saved[0].copy_out = out;
  d.saved[0].copy_in = in;
  return replay(index, lower(index, d)->schedule, detail);
}

// On a lane: the copy out runs 100..1100; compute is at the unpack at 300 and waits 800, then 1000
// for the copy back: 2100, and 400 more.
TEST(Replay, CopiesOnALane) {
  ReplayDetail detail;
  const ReplayResult r = with_modes(one_tensor(), CopyMode::lane, CopyMode::lane, &detail);
  EXPECT_EQ(r.step_ns, 2500);
  EXPECT_EQ(r.compute_ns, 700);
  EXPECT_EQ(r.stall_ns, 1800);
  ASSERT_EQ(detail.transfers.size(), 2u);
  EXPECT_EQ(detail.transfers[0].start, 100);
  EXPECT_EQ(detail.transfers[0].end, 1100);
  EXPECT_EQ(detail.transfers[1].ready, 1100);
  EXPECT_EQ(detail.transfers[1].end, 2100);
  EXPECT_EQ(detail.time.back(), 2500);
}

// On compute, and blocking: 1000 at the pack and 1000 at the unpack, each counted as a stall.
TEST(Replay, CopiesOnComputeAndBlocking) {
  for (const CopyMode mode : {CopyMode::compute, CopyMode::blocking}) {
    const ReplayResult r = with_modes(one_tensor(), mode, mode);
    EXPECT_EQ(r.step_ns, 2700);
    EXPECT_EQ(r.stall_ns, 2000);
    ASSERT_EQ(r.stalls.size(), 2u);
    EXPECT_EQ(r.stalls[0].start, 100);
    EXPECT_EQ(r.stalls[1].start, 1300);
    EXPECT_EQ(r.peak_requested, 1000);
  }
}

// A kernel of 1000 ns, then the pack of `bytes`, launched by 10 (compute is there at 1010); a
// kernel of 100 ns that counts to the gap of `launch` + `rest` ns behind it, and backward with the
// unpack.
Trace saved_between_kernels(Bytes bytes, Nanoseconds launch, Nanoseconds rest) {
  MicroTrace t;
  t.begin_op();
  const auto a = t.alloc(bytes);
  t.run(5).kernel(1000);
  t.run(5);
  const auto s = t.pack(a);
  t.let_go(a);
  t.run(launch).kernel(100);
  t.run(rest).end_op();
  t.backward();
  t.unpack(s);
  t.free(a);
  return t.finish();
}

// A launch thread far ahead: one kernel of 1000 ns launched by 10, the unpack reached at 20. A copy
// out on its lane starts when compute has reached the pack, and the next kernel does not wait for
// the launch thread. Blocking, the launch thread stands still for the copy, and what it launches
// afterwards comes that much later.
TEST(Replay, BlockingHoldsTheLaunchThread) {
  const Trace trace = saved_between_kernels(1000, 10, 3000);
  // Lane: kernel 2 counts to the gap that ends at 3020, so it ends at 3120; the copy out ran
  // 1010..2010 beside it; the copy back runs 3120..4120.
  EXPECT_EQ(with_modes(trace, CopyMode::lane, CopyMode::lane).step_ns, 4120);
  // Blocking: the launch thread goes on at 2010, and needs 3010 more: 5020; kernel 2 until 5120.
  // The storage has left at the pack, so its copy back may start there, and is long done.
  EXPECT_EQ(with_modes(trace, CopyMode::blocking, CopyMode::lane).step_ns, 5120);
}

// The same step on a GPU that pauses. The copy out finds its lane idle, so it starts 15 (half of
// the handover) behind compute. Kernel 2 ends at 3120; the copy back starts at 3135 and ends at
// 4135, and compute, which stood still for it, hears of that 15 later. On the compute stream it
// takes 50 + 1000 from 3120 on. Blocking, the launch thread hears of the copy's end at 2040 and
// needs 3010 more.
TEST(Replay, HandsOverBetweenComputeAndLanes) {
  Trace trace = saved_between_kernels(1000, 10, 3000);
  trace.calibration.start_gap_ns = 7;
  trace.calibration.handover_ns = 30;
  trace.calibration.compute_copy_gap_ns = 50;
  ReplayDetail detail;
  const ReplayResult lanes = with_modes(trace, CopyMode::lane, CopyMode::lane, &detail);
  EXPECT_EQ(lanes.step_ns, 4150);
  ASSERT_EQ(detail.transfers.size(), 2u);
  EXPECT_EQ(detail.transfers[0].end, 2025);
  EXPECT_EQ(detail.transfers[1].end, 4135);
  EXPECT_EQ(with_modes(trace, CopyMode::lane, CopyMode::compute).step_ns, 4170);
  EXPECT_EQ(with_modes(trace, CopyMode::blocking, CopyMode::lane).step_ns, 5150);
}

// Blocking, the launch thread goes on at 2010 and needs 3010 at full speed: at half of it 6020, and
// kernel 2 takes 100. On lanes it never waits.
TEST(Replay, LaunchesSlowlyBehindAWait) {
  Trace trace = saved_between_kernels(1000, 10, 3000);
  const Nanoseconds lanes = with_modes(trace, CopyMode::lane, CopyMode::lane).step_ns;
  trace.calibration.woken_launch = 500'000;
  EXPECT_EQ(with_modes(trace, CopyMode::blocking, CopyMode::lane).step_ns, 2010 + 6020 + 100);
  EXPECT_EQ(with_modes(trace, CopyMode::lane, CopyMode::lane).step_ns, lanes);
  trace.calibration.woken_launch = 0;  // at least a hundredth
  EXPECT_EQ(with_modes(trace, CopyMode::blocking, CopyMode::lane).step_ns, 2010 + 301'000 + 100);
}

// Only the first 250,000 of its work: the launch thread goes on at 2010 and needs 400,010, of which
// 250,000 take twice as long.
TEST(Replay, LaunchesAtFullSpeedAgainFurtherBehindAWait) {
  Trace trace = saved_between_kernels(1000, 10, 400'000);
  trace.calibration.woken_launch = 500'000;
  EXPECT_EQ(with_modes(trace, CopyMode::blocking, CopyMode::lane).step_ns,
            2010 + 500'000 + 150'010 + 100);
}

// Compute stands still for 7 wherever a copy on a lane starts: a kernel of 1000, the pack, a kernel
// of 100 that is launched long before.
TEST(Replay, PausesWhereACopyStarts) {
  Trace trace = saved_between_kernels(10, 5, 5);
  const Nanoseconds without = with_modes(trace, CopyMode::lane, CopyMode::lane).step_ns;
  trace.calibration.start_gap_ns = 7;
  // The copy back of 10 is waited for from its own start on, so its pause is none.
  EXPECT_EQ(with_modes(trace, CopyMode::lane, CopyMode::lane).step_ns, without + 7);
}

// What the launch thread pays: 10 for a hook, 100 for a copy, 40 for a wait. The pack is reached at
// 10 + 10, the copy out (1000) is issued by 120 and runs until 1120. The wait for it stands at the
// unpack, 100 + 10 later: issued at 230 + 40 = 270; compute waits 850 until 1120. There the copy
// back is issued by 370, so it runs 1120..2120; its wait is issued by 410, compute waits 1000 for
// it. 50 more on the launch thread, 460, have no work: the step ends at 2120.
TEST(Replay, IssuingTakesTheLaunchThreadsTime) {
  MicroTrace t;
  const auto a = t.alloc(1000);
  t.kernel(1);
  const auto s = t.run(10).pack(a);
  t.let_go(a);
  t.run(100).backward();
  t.unpack(s);
  t.free(a);
  t.run(50);
  Trace trace = t.finish();
  trace.calibration.hook_ns = 10;
  trace.calibration.copy_issue_ns = 100;
  trace.calibration.wait_issue_ns = 40;
  ReplayDetail detail;
  const ReplayResult r = with_modes(trace, CopyMode::lane, CopyMode::lane, &detail);
  ASSERT_EQ(detail.transfers.size(), 2u);
  EXPECT_EQ(detail.transfers[0].start, 120);
  EXPECT_EQ(detail.transfers[1].start, 1120);
  ASSERT_EQ(r.stalls.size(), 2u);
  EXPECT_EQ(r.stalls[0].start, 270);
  EXPECT_EQ(r.stalls[0].duration, 850);
  EXPECT_EQ(r.stalls[1].duration, 1000);
  EXPECT_EQ(r.step_ns, 2120);
  // Nothing of it without a plan: 160 ns of launching. A plan that moves nothing has both hooks.
  const StepIndex index(trace);
  EXPECT_EQ(replay(index, resident_schedule(index)).step_ns, 160);
  Decisions nothing;
  nothing.saved.resize(trace.saved.size());
  EXPECT_EQ(replay(index, lower(index, nothing)->schedule).step_ns, 180);
}

// A kernel of 1000 ns launched by 10; the CPU then stood still for 700 until 710, which it does
// here until the kernel is done at 1010. What it launches in the 20 ns after that starts at 1030.
TEST(Replay, TheLaunchThreadWaitsWhereItDid) {
  MicroTrace t;
  t.begin_op();
  t.run(10).kernel(1000);
  t.sync(700);
  t.end_op();
  t.begin_op();
  t.run(20).kernel(5);
  t.end_op();
  const Trace trace = t.finish();
  const StepIndex index(trace);
  EXPECT_EQ(index.resident_time().back(), 1035);
  ReplayDetail detail;
  EXPECT_EQ(replay(index, resident_schedule(index), &detail).step_ns, 1035);
  EXPECT_EQ(detail.time[2], 1010);
}

// The model itself holds the storage until event 4, so the release at the pack frees nothing yet.
TEST(Replay, NaturalFreeBehindTheRelease) {
  MicroTrace t;
  const auto a = t.alloc(100);  // 1
  const auto s = t.pack(a);     // 2
  const auto b = t.alloc(50);   // 3: a is still there
  t.begin_op();                 // 4
  t.let_go(a);
  const auto c = t.alloc(30);  // 5: a is gone
  t.end_op();                  // 6
  t.backward();                // 7
  t.free(b);                   // 8
  t.free(c);                   // 9
  t.unpack(s);                 // 10
  t.free(a);                   // 11
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Decisions d = testing::offload_all(trace);
  d.saved[0].release.kind = ReleasePoint::Kind::pack;
  d.saved[0].reload.kind = ReloadPoint::Kind::unpack;
  ReplayDetail detail;
  const ReplayResult r = replay(index, lower(index, d)->schedule, &detail);
  EXPECT_EQ(detail.requested,
            (std::vector<Bytes>{0, 100, 100, 150, 150, 80, 80, 80, 30, 0, 100, 0, 0}));
  EXPECT_EQ(r.peak_requested, 150);
  EXPECT_EQ(r.peak_event, EventId(3));
}

// The model lets go at the pack itself, so the storage goes in the gap behind event 2, not at the
// release there: a reload that starts at the same place has its buffer on top.
TEST(Replay, NaturalFreeAtTheRelease) {
  MicroTrace t;
  t.begin_layer("L");           // 1
  const auto a = t.alloc(100);  // 2
  const auto s = t.pack(a);     // 3
  t.let_go(a);
  t.end_layer("L");  // 4
  t.backward();      // 5
  t.unpack(s);       // 6
  t.free(a);         // 7
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Decisions d = testing::offload_all(trace);
  d.saved[0].release.kind = ReleasePoint::Kind::pack;
  d.saved[0].reload.kind = ReloadPoint::Kind::point;  // ahead of the release: moves behind it
  d.saved[0].reload.point.phase = ProgramPoint::Phase::forward;
  d.saved[0].reload.point.layer = "L";
  d.saved[0].reload.point.where = ProgramPoint::Where::begin;
  ReplayDetail detail;
  const ReplayResult r = replay(index, lower(index, d)->schedule, &detail);
  EXPECT_EQ(detail.requested, (std::vector<Bytes>{0, 0, 100, 200, 100, 100, 100, 0, 0}));
  EXPECT_EQ(r.peak_requested, 200);
  EXPECT_EQ(r.peak_event, EventId(3));
}

// One tensor after the other goes out and comes back: the lanes' transfers are merged by start.
TEST(Replay, TransfersInOrderOfStart) {
  MicroTrace t;
  const auto a = t.alloc(100);
  const auto first = t.pack(a);
  t.let_go(a);
  t.backward();
  t.unpack(first);
  t.free(a);
  t.forward();
  const auto b = t.alloc(40);
  const auto second = t.pack(b);
  t.let_go(b);
  t.backward();
  t.unpack(second);
  t.free(b);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  ReplayDetail detail;
  static_cast<void>(replay(index, lower(index, testing::offload_all(trace))->schedule, &detail));
  // Out 0..100, back 100..200, out 200..240, back 240..280.
  ASSERT_EQ(detail.transfers.size(), 4u);
  EXPECT_EQ(detail.transfers[0].start, 0);
  EXPECT_EQ(detail.transfers[1].start, 100);
  EXPECT_FALSE(detail.transfers[1].is_store);
  EXPECT_EQ(detail.transfers[2].start, 200);
  EXPECT_TRUE(detail.transfers[2].is_store);
  EXPECT_EQ(detail.transfers[3].start, 240);
}

// On a device that rounds, active counts blocks: the storage's recorded 1024, the buffer's 1024.
TEST(Replay, ActiveCountsRoundedBytes) {
  Trace trace = one_tensor();
  trace.storages.rounded_bytes[0] = 1024;
  const ReplayResult r = with_modes(trace, CopyMode::lane, CopyMode::lane);
  EXPECT_EQ(r.peak_requested, 1000);
  EXPECT_EQ(r.peak_active, 1024);
  EXPECT_EQ(r.peak_reserved, -1);
}

// The peak is at the unpack: 600 bytes in a block of 1024 and the buffer of 1000 in one of 1024.
TEST(Replay, ActiveCountsTheBlocksOfBuffers) {
  MicroTrace t;
  const auto a = t.alloc(1000);
  const auto s = t.pack(a);
  t.let_go(a);
  t.backward();
  const auto b = t.alloc(600);
  t.unpack(s);
  t.free(a);
  t.free(b);
  Trace trace = t.finish();
  trace.storages.rounded_bytes = {1024, 1024};
  const StepIndex index(trace);
  Decisions d = testing::offload_all(trace);
  d.saved[0].release.kind = ReleasePoint::Kind::pack;
  d.saved[0].reload.kind = ReloadPoint::Kind::unpack;
  const ReplayResult r = replay(index, lower(index, d)->schedule);
  EXPECT_EQ(r.peak_requested, 1600);
  EXPECT_EQ(r.peak_active, 2048);
}

}  // namespace
}  // namespace stowage::simulator
