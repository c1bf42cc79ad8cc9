#include "simulator/lowering/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/hazards/hazards.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_parts.h"

namespace stowage::simulator {
namespace {

using testing::keep_all;
using testing::made_stays;
using testing::MicroTrace;
using testing::offload_all;
using testing::reloads;

struct At {
  std::int32_t event;
  Side side;
  friend bool operator==(const At&, const At&) = default;
};
std::ostream& operator<<(std::ostream& out, const At& at) {
  return out << at.event << (at.side == Side::before ? " before" : " after");
}

At place(const Schedule& schedule, Action action, StayId stay) {
  for (const Instruction& i : schedule.instructions) {
    if (i.action == action && i.stay == stay) return {i.anchor.event.value, i.anchor.side};
  }
  return {-1, Side::before};
}

// Three activations of 100, 200 and 400 bytes; 1 byte takes 1 ns. Forward: an op of 100 ns ahead of
// each pack; backward in reverse, 300 ns ahead of each unpack but the first (100).
//   event  time
//   0      0     step_begin
//   1      0     layer_forward_begin L
//   2, 3   100   alloc a, pack a      (let go at 3)
//   4, 5   200   alloc b, pack b      (let go at 5)
//   6, 7   300   alloc c, pack c      (let go at 7)
//   8      400   layer_forward_end L
//   9      400   backward_begin
//   10     400   layer_backward_begin L
//   11     500   unpack c   12 free c
//   13     800   unpack b   14 free b
//   15     1100  unpack a   16 free a
//   17     1100  layer_backward_end L
//   18     1100  step_end
struct ThreeTensors {
  Trace trace = [] {
    MicroTrace t;
    t.begin_layer("L");
    std::vector<StorageId> storages;
    std::vector<SavedId> saved;
    for (const Bytes bytes : {100, 200, 400}) {
      t.run(100);
      storages.push_back(t.alloc(bytes));
      saved.push_back(t.pack(storages.back()));
      t.let_go(storages.back());
    }
    t.run(100).end_layer("L");
    t.backward();
    t.begin_layer_backward("L");
    for (const std::size_t i : {2u, 1u, 0u}) {
      t.run(i == 2 ? 100 : 300);
      t.unpack(saved[i]);
      t.free(storages[i]);
    }
    t.end_layer_backward("L");
    return t.finish();
  }();
  StepIndex index{trace};
};

// D2H queue: a 100..200, b 200..400, c 400..800. a leaves at the first anchor at or after 200: the
// pack of b (event 5); b at 400: the end of L (8); c would be done at 800, behind the first unpack
// (500), so it leaves there.
// H2D queue, backward: a needed at 1100 starts at 1000; b needed at 800 starts at 600; c needed at
// 500 starts at 100. Anchors at or before: a: unpack b (800) event 13; b: unpack c (500) event 11;
// c: 100 is event 3, but it is released at event 11: on demand.
TEST(Lowering, AutomaticPoints) {
  const ThreeTensors t;
  const auto lowered = lower(t.index, offload_all(t.trace));
  ASSERT_TRUE(lowered.ok());
  const Schedule& s = lowered->schedule;
  ASSERT_EQ(s.tenants.size(), 3u);
  ASSERT_EQ(reloads(s).size(), 3u);
  EXPECT_EQ(place(s, Action::store, made_stays(s).at(0)), (At{3, Side::after}));
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(0)), (At{5, Side::after}));
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(1)), (At{8, Side::after}));
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(2)), (At{11, Side::before}));
  EXPECT_EQ(place(s, Action::load, reloads(s).at(0)), (At{11, Side::before}));  // c
  EXPECT_EQ(place(s, Action::load, reloads(s).at(1)), (At{11, Side::after}));   // b
  EXPECT_EQ(place(s, Action::load, reloads(s).at(2)), (At{13, Side::after}));   // a
  EXPECT_EQ(place(s, Action::await, reloads(s).at(1)), (At{13, Side::before}));
  EXPECT_EQ(place(s, Action::evict, reloads(s).at(1)), (At{13, Side::after}));
  EXPECT_TRUE(find_hazards(t.index, s).empty());
  EXPECT_TRUE(lowered->notes.empty());

  // Stalls: the release of c waits from 500 to 800, its reload from 800 to 1200; then b's copy
  // (200 ns) hides under 300 ns, a's too. Step: 1100 + 700.
  const ReplayResult r = replay(t.index, s);
  EXPECT_EQ(r.stall_ns, 700);
  EXPECT_EQ(r.step_ns, 1800);
  ASSERT_EQ(r.stalls.size(), 2u);
  EXPECT_EQ(r.stalls[0].start, 500);
  EXPECT_EQ(r.stalls[0].duration, 300);
  EXPECT_TRUE(r.stalls[0].is_store);
  EXPECT_EQ(r.stalls[1].duration, 400);
  EXPECT_FALSE(r.stalls[1].is_store);
  // Peak: a leaves at 5, ahead of c: a + b = 300, then b + c = 600, then c alone, then b on top of
  // c's buffer, which dies at event 11 itself: so c + b = 600 at its load.
  EXPECT_EQ(r.peak_requested, 600);
  EXPECT_EQ(r.peak_event, EventId(6));
  EXPECT_EQ(r.d2h_bytes, 700);
  EXPECT_EQ(r.h2d_bytes, 700);
  EXPECT_EQ(r.host_bytes, 3 * 512);
}

// Copies beside compute at half speed, and compute is expected to be busy. D2H: a 100..300, b
// 300..700. a leaves at the pack of c (300), b not ahead of the first unpack (500). H2D: a needed
// at 1100 starts at 900: event 13; b needed at 800 at 400, which is ahead of its release.
TEST(Lowering, AutomaticPointsExpectInterference) {
  ThreeTensors t;
  t.trace.calibration.copy_interference = 500'000;
  const auto lowered = lower(t.index, offload_all(t.trace));
  ASSERT_TRUE(lowered.ok());
  const Schedule& s = lowered->schedule;
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(0)), (At{7, Side::after}));
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(1)), (At{11, Side::before}));
  EXPECT_EQ(place(s, Action::load, reloads(s).at(1)), (At{11, Side::before}));
  EXPECT_EQ(place(s, Action::load, reloads(s).at(2)), (At{13, Side::after}));
}

// Budget 450. At alloc c (event 6) b + c = 600: b, the oldest that is still there, leaves at the
// anchor ahead of it, its own pack (5). Reload b (200) on top of c's buffer at event 11 would be
// 600: later, and the first anchor behind event 11 is its own unpack: on demand.
TEST(Lowering, AutomaticPointsWithinABudget) {
  const ThreeTensors t;
  Decisions d = offload_all(t.trace);
  d.budget = 450;
  const auto lowered = lower(t.index, d);
  ASSERT_TRUE(lowered.ok());
  const Schedule& s = lowered->schedule;
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(0)), (At{5, Side::after}));
  EXPECT_EQ(place(s, Action::evict, made_stays(s).at(1)), (At{5, Side::after}));
  EXPECT_EQ(place(s, Action::load, reloads(s).at(1)), (At{13, Side::before}));
  EXPECT_EQ(place(s, Action::load, reloads(s).at(2)), (At{13, Side::after}));  // 200 + 100 is fine
  EXPECT_EQ(replay(t.index, s).peak_requested, 400);
}

TEST(Lowering, ReleaseAfterMorePacks) {
  const ThreeTensors t;
  Decisions d = offload_all(t.trace);
  for (auto& row : d.saved) row.release.kind = ReleasePoint::Kind::pack;
  d.saved[0].release.lag = 1;  // behind the pack of b
  d.saved[1].release.lag = 0;  // behind its own
  d.saved[2].release.lag = 1;  // there is no further pack: at the first unpack
  const auto lowered = lower(t.index, d);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(place(lowered->schedule, Action::evict, made_stays(lowered->schedule).at(0)),
            (At{5, Side::after}));
  EXPECT_EQ(place(lowered->schedule, Action::evict, made_stays(lowered->schedule).at(1)),
            (At{5, Side::after}));
  EXPECT_EQ(place(lowered->schedule, Action::evict, made_stays(lowered->schedule).at(2)),
            (At{11, Side::before}));
  d.saved[1] = SavedDecision();  // kept: its pack does not count any more
  const auto fewer = lower(t.index, d);
  ASSERT_TRUE(fewer.ok());
  EXPECT_EQ(place(fewer->schedule, Action::evict, made_stays(fewer->schedule).at(0)),
            (At{7, Side::after}));
}

ProgramPoint at_layer(ProgramPoint::Phase phase, const std::string& layer,
                      ProgramPoint::Where where) {
  ProgramPoint p;
  p.phase = phase;
  p.layer = layer;
  p.where = where;
  return p;
}

TEST(Lowering, ProgramPoints) {
  const ThreeTensors t;
  Decisions d = offload_all(t.trace);
  d.saved[0].rule = 4;
  d.saved[0].release = {ReleasePoint::Kind::point, 0,
                        at_layer(ProgramPoint::Phase::forward, "L", ProgramPoint::Where::end)};
  d.saved[0].reload = {ReloadPoint::Kind::point,
                       at_layer(ProgramPoint::Phase::backward, "L", ProgramPoint::Where::begin)};
  const auto lowered = lower(t.index, d);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(place(lowered->schedule, Action::evict, made_stays(lowered->schedule).at(0)),
            (At{8, Side::after}));
  EXPECT_EQ(place(lowered->schedule, Action::load, reloads(lowered->schedule).at(2)),
            (At{10, Side::after}));

  // A reload point ahead of the release is moved behind it.
  Decisions late = d;
  late.saved[0].release.point.phase = ProgramPoint::Phase::backward;  // end: event 17, behind its
  const auto moved = lower(t.index, late);                            // unpack: there at the latest
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(place(moved->schedule, Action::evict, made_stays(moved->schedule).at(0)),
            (At{15, Side::before}));
  EXPECT_EQ(place(moved->schedule, Action::load, reloads(moved->schedule).at(2)),
            (At{15, Side::before}));
  // And that it buys nothing is said.
  EXPECT_TRUE(lowered->notes.empty());
  ASSERT_EQ(moved->notes.size(), 1U);
  EXPECT_EQ(moved->notes[0].text, "frees nothing: its reload point lies ahead of where it leaves");

  Decisions early = d;
  early.saved[0].release.point.where = ProgramPoint::Where::begin;  // event 1, before the pack
  const auto no_release = lower(t.index, early);
  ASSERT_FALSE(no_release.ok());
  EXPECT_EQ(no_release.error().code, ErrorCode::bad_input);
  EXPECT_EQ(no_release.error().pointer, "/saved/4/release");
  EXPECT_EQ(no_release.error().message, "the release point lies before L#0 is packed");

  Decisions after = d;
  after.saved[0].reload.point.where = ProgramPoint::Where::end;  // event 17, behind the unpack
  const auto no_reload = lower(t.index, after);
  ASSERT_FALSE(no_reload.ok());
  EXPECT_EQ(no_reload.error().pointer, "/saved/4/reload");
  EXPECT_EQ(no_reload.error().message, "the reload point lies after L#0 is first unpacked");

  Decisions nowhere = d;
  nowhere.saved[0].reload.point.layer = "M";
  EXPECT_EQ(lower(t.index, nowhere).error().code, ErrorCode::bad_input);
}

// Two views of one storage of 800 bytes: elements 0..49 (200 bytes) and 100..149 (bytes 400..600).
// byte_range() rounds the begin down to 256: 0..200 and 256..600; together 0..600.
struct TwoViews {
  Trace trace = [] {
    MicroTrace t;
    const auto a = t.alloc(800);
    const auto first = t.pack(t.view(a, 0, 50));
    const auto second = t.pack(t.view(a, 100, 50));
    t.let_go(a);
    t.backward();
    const auto u = t.unpack(second);
    t.run(10);
    t.unpack(first);
    t.unpack(second);
    t.begin_layer_backward("x");
    t.drop(u);
    t.free(a);
    return t.finish();
  }();
  StepIndex index{trace};
};

TEST(Lowering, ASharedStorageMovesOnce) {
  const TwoViews t;
  const auto lowered = lower(t.index, offload_all(t.trace));
  ASSERT_TRUE(lowered.ok());
  const Schedule& s = lowered->schedule;
  ASSERT_EQ(s.tenants.size(), 1u);
  EXPECT_EQ(s.tenants[0].begin, 0);
  EXPECT_EQ(s.tenants[0].bytes, 600);
  EXPECT_EQ(s.tenants[0].saved.size(), 2u);
  ASSERT_EQ(reloads(s).size(), 1u);
  EXPECT_EQ(s.stays[reloads(s)[0].index()].unpacks.size(), 3u);
  EXPECT_EQ(place(s, Action::evict, reloads(s).at(0)).event, t.trace.unpacks.event[2].value);
}

TEST(Lowering, OneCopyAViewAndUnpack) {
  const TwoViews t;
  Decisions d = offload_all(t.trace);
  for (auto& row : d.saved) row.share = false;
  const auto lowered = lower(t.index, d);
  ASSERT_TRUE(lowered.ok());
  const Schedule& s = lowered->schedule;
  ASSERT_EQ(s.tenants.size(), 2u);
  EXPECT_EQ(s.tenants[0].bytes, 200);
  EXPECT_EQ(s.tenants[1].begin, 256);
  EXPECT_EQ(s.tenants[1].bytes, 344);
  ASSERT_EQ(reloads(s).size(), 3u);
  EXPECT_EQ(s.stays[reloads(s)[0].index()].tenant, TenantId(std::size_t{1}));
  EXPECT_EQ(s.stays[reloads(s)[1].index()].tenant, TenantId(std::size_t{0}));
  EXPECT_TRUE(find_hazards(t.index, s).empty());
}

std::string only_note(const Lowering& lowering, std::size_t count) {
  EXPECT_EQ(lowering.notes.size(), count);
  return lowering.notes.empty() ? "" : lowering.notes.front().text;
}

TEST(Lowering, AStorageLeavesOnlyWhenAllOfItsSitesSaySo) {
  const TwoViews t;
  Decisions d = offload_all(t.trace);
  d.saved[1].decision = Decision::keep;
  auto lowered = lower(t.index, d);
  ASSERT_TRUE(lowered.ok());
  EXPECT_TRUE(lowered->schedule.tenants.empty());
  EXPECT_EQ(only_note(*lowered, 1), "stays: its storage is also saved at step#1, which is kept");
  d = offload_all(t.trace);
  d.saved[1].copy_in = CopyMode::blocking;
  lowered = lower(t.index, d);
  EXPECT_TRUE(lowered->schedule.tenants.empty());
  EXPECT_EQ(only_note(*lowered, 2),
            "stays: its storage is saved at step#0 and at step#1, which are copied in different "
            "ways");
}

TEST(Lowering, StoragesThatChangeStay) {
  MicroTrace t;
  const auto a = t.alloc(400);
  const auto first = t.pack(a);
  const auto second = t.pack(a);
  t.set_version(second, 1);
  const auto b = t.alloc(400);
  const auto third = t.pack(b);
  t.begin_op("aten::zero_");
  t.write(b);
  t.end_op();
  t.backward();
  t.unpack(third);
  t.unpack(first);
  t.free(a);
  t.free(b);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const auto lowered = lower(index, offload_all(trace));
  ASSERT_TRUE(lowered.ok());
  EXPECT_TRUE(lowered->schedule.tenants.empty());
  ASSERT_EQ(lowered->notes.size(), 3u);
  EXPECT_EQ(lowered->notes[0].text,
            "stays: its storage is saved at step#0 and, changed in place, at step#1");
  EXPECT_EQ(lowered->notes[2].text,
            "stays: its storage is written after it was saved, before it is needed again");
}

// What existed before the step is copied and comes back, but the original stays: 1000 bytes from
// the begin, and a buffer of 1000 on top.
TEST(Lowering, ParametersOnlyAddBuffers) {
  MicroTrace t;
  const auto w = t.existing(1000);
  const auto saved = t.pack(w);
  t.backward();
  t.unpack(saved);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const auto lowered = lower(index, offload_all(trace));
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(only_note(*lowered, 1), "frees nothing: its storage existed before the step");
  EXPECT_EQ(replay(index, lowered->schedule).peak_requested, 2000);
}

// Nobody unpacks it: it leaves for good, when its copy is done at the latest by the step's end.
TEST(Lowering, NoReloadWithoutUnpack) {
  MicroTrace t;
  const auto a = t.alloc(100);
  t.pack(a);
  t.let_go(a);
  t.run(50).backward();
  t.free(a);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const auto lowered = lower(index, offload_all(trace));
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->schedule.tenants.size(), 1u);
  EXPECT_TRUE(reloads(lowered->schedule).empty());
  EXPECT_EQ(place(lowered->schedule, Action::evict, made_stays(lowered->schedule).at(0)).event,
            trace.events.size() - 1);
  EXPECT_EQ(replay(index, lowered->schedule).stall_ns, 50);
  EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
}

TEST(Lowering, PlanForAnotherModel) {
  ThreeTensors t;
  t.trace.run.batch = 4;
  Plan plan;
  plan.target.model = "gpt2:layers=6";
  plan.target.batch = 8;
  plan.target.dtype = "bf16";
  plan.target.optimizer = "none";
  plan.target.fingerprint = "sha256:other";
  const auto lowered = lower(t.index, plan);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().code, ErrorCode::bad_input);
  EXPECT_EQ(lowered.error().pointer, "/for/fingerprint");
  EXPECT_EQ(lowered.error().message,
            "the plan was made for gpt2:layers=6, batch 8, bf16; the trace is of micro, batch 4, "
            "fp32 and saves other tensors");
  plan.target.fingerprint.clear();
  EXPECT_TRUE(lower(t.index, plan).ok());
}

TEST(Lowering, NeedsACalibratedLink) {
  ThreeTensors t;
  t.trace.calibration.h2d = {};
  EXPECT_TRUE(lower(t.index, keep_all(t.trace)).ok());
  const auto lowered = lower(t.index, offload_all(t.trace));
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().pointer, "/calibration");
}

// Whatever the budget, automatic points do no worse than leaving at once and coming back on demand,
// which is the least memory that the same offloads can have; and they stay within any budget above
// that. Starts follow the order of first unpacks.
TEST(Lowering, AutomaticPointsKeepTheBudgetWheneverTheyCan) {
  int bound = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Trace trace = testing::random_trace(seed, {static_cast<int>(4 + seed % 20), false});
    const StepIndex index(trace);
    Decisions least = offload_all(trace);
    for (auto& row : least.saved) {
      row.release.kind = ReleasePoint::Kind::pack;
      row.reload.kind = ReloadPoint::Kind::unpack;
      row.share = seed % 3 != 0;
    }
    const auto tight = lower(index, least);
    ASSERT_TRUE(tight.ok());
    const Bytes floor = replay(index, tight->schedule).peak_requested;
    const Bytes top = replay(index, resident_schedule(index)).peak_requested;
    Decisions d = offload_all(trace);
    for (auto& row : d.saved) row.share = seed % 3 != 0;
    for (int percent = -20; percent <= 120; percent += 20) {
      d.budget = floor + (top - floor) * percent / 100;
      const auto lowered = lower(index, d);
      ASSERT_TRUE(lowered.ok());
      const Bytes peak = replay(index, lowered->schedule).peak_requested;
      ASSERT_LE(peak, std::max(*d.budget, floor)) << "seed " << seed << " " << percent << " %";
      bound += peak > floor ? 1 : 0;
      std::int32_t previous = -1;
      for (const Instruction& i : lowered->schedule.instructions) {
        if (i.action != Action::load) continue;
        ASSERT_GT(i.stay.value, previous);
        previous = i.stay.value;
      }
    }
  }
  EXPECT_GT(bound, 500);  // the budget, not the floor, was what decided
}

}  // namespace
}  // namespace stowage::simulator
