#include "profiler/assembly/device_times.h"

#include <gtest/gtest.h>

#include <random>

#include "profiler/assembly/assemble.h"
#include "profiler/assembly/timing_pass_json.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "tests/profiler/fabricated_recording.h"
#include "tests/profiler/fabricated_timing.h"
#include "traces/validate.h"

namespace stowage::profiler {
namespace {

using testing::FabricatedRecording;
using testing::FabricatedTiming;
using Times = std::vector<Nanoseconds>;

// Ops of two events each, `count` of them: events 0 .. 2 * count + 1.
RawRecording ops(int count, Nanoseconds clean) {
  FabricatedRecording r;
  r.existing(1000);
  r.begin_layer("a");
  for (int i = 0; i < count; ++i) {
    r.begin_op("op");
    r.end_op();
  }
  r.end_layer("a");
  return r.finish(clean);
}

DeviceTimes times_of(const RawRecording& recording, const TimingPass& timing, Nanoseconds clean) {
  Result<DeviceTimes> times = device_times(recording.structure, timing, clean);
  EXPECT_TRUE(times.ok()) << times.error().text();
  return std::move(times).value();
}

TEST(TwoClocks, IsTheLaterOfLaunchThreadAndDevice) {
  // Launch reaches the events at 0, 10, 20, 30. Work 25 from 10, work 5 right behind it: 40.
  TwoClocks clocks{{0, 10, 10, 10}, {0, 25, 5, 0}, {0, 0, 0, 0}};
  EXPECT_EQ(step_end(clocks, {1, 1}), 40);
  EXPECT_EQ(step_end(clocks, {0, 1}), 30);
  EXPECT_EQ(step_end(clocks, {1, 0}), 30);
  // The launch thread waits for the device behind event 1: 35, then 20 more.
  clocks.sync[1] = 1;
  EXPECT_EQ(step_end(clocks, {1, 1}), 55);
}

TEST(TwoClocks, ScalesFitTheCleanStep) {
  // As measured 40; the device alone 30; the launch thread alone 30.
  const TwoClocks clocks{{0, 10, 10, 10}, {0, 25, 5, 0}, {0, 0, 0, 0}};
  const Scales longer = fit_scales(clocks, 80);
  EXPECT_DOUBLE_EQ(longer.launch, 2);
  EXPECT_DOUBLE_EQ(longer.compute, 2);
  const Scales between = fit_scales(clocks, 35);  // 10 s + 30 = 35
  EXPECT_NEAR(between.launch, 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(between.compute, 1);
  const Scales shorter = fit_scales(clocks, 15);
  EXPECT_NEAR(shorter.compute, 0.5, 0.005);
  EXPECT_GT(shorter.launch, 0);
  const double end = static_cast<double>(
      step_end({{0, 10'000'000, 0}, {0, 25'000'000, 0}, {0, 0, 0}},
               fit_scales({{0, 10'000'000, 0}, {0, 25'000'000, 0}, {0, 0, 0}}, 20'000'000)));
  EXPECT_NEAR(end, 20'000'000, 2);
  EXPECT_DOUBLE_EQ(fit_scales(clocks, 0).launch, 1);
}

TEST(DeviceTimes, WorkIsWhatAKernelAddsAndTheGapItInherits) {
  const RawRecording recording = ops(2, 0);  // events 0 .. 7
  FabricatedTiming t(recording.structure);
  const auto at = FabricatedTiming::at;
  t.kernel(at(2, 0), at(2, 5000), 20'000);   // until at(4, 5000)
  t.memset(at(3, 0), at(4, 6500), 10'000);   // launched long before; 1500 ns of gap are its own
  t.memset(at(5, 4000), at(5, 8000), 1000);  // launched late: the gap is the launch's
  t.memset(at(5, 4100), at(5, 8500), 2000);  // half a microsecond of it beside the one before
  const DeviceTimes times = times_of(recording, t.timing, 0);
  ASSERT_EQ(times.activities.size(), 4U);
  EXPECT_EQ(times.activities[0].duration, 20'000);
  EXPECT_EQ(times.activities[1].duration, 11'500);
  EXPECT_EQ(times.activities[2].duration, 1000);
  EXPECT_EQ(times.activities[3].duration, 1500);
  // Launched behind event e, so the work waits for event e + 1.
  EXPECT_EQ(times.activities[0].start, 30'000);
  EXPECT_EQ(times.activities[1].start, 50'000);
  EXPECT_EQ(times.activities[2].start, 61'500);
  EXPECT_EQ(times.activities[3].start, 62'500);
  EXPECT_EQ(times.activities[0].launch_start, 20'000);
  EXPECT_EQ(times.activities[0].launch_duration, 2000);
  EXPECT_EQ(times.events, (Times{0, 10'000, 20'000, 30'000, 40'000, 50'000, 60'000, 70'000}));
}

TEST(DeviceTimes, WaitingIsNoLaunchWork) {
  const RawRecording recording = ops(2, 0);
  FabricatedTiming t(recording.structure);
  const auto at = FabricatedTiming::at;
  t.memset(at(1, 0), at(1, 4000), 20'000);
  t.sync(at(3, 1000), at(3, 7000));
  t.sync(at(6, 2000), at(6, 9000));                                // the recorder's
  t.timing.pass.hook_spans.push_back({at(4, 2000), at(4, 5000)});  // ours
  for (int i = 0; i < 9; ++i) t.kernel(at(2, 10 + i), at(3, 7000), 1);
  t.timing.activities.launches.back().end_ns = at(2, 18) + 25'000;  // the queue was full
  const DeviceTimes times = times_of(recording, t.timing, 0);
  // Gaps of 10 us less: the launch of 25 us counts its median of 2 (until 5018 ns behind event 4,
  // which covers the wait behind 3 and the hook), 7 us behind event 6.
  EXPECT_EQ(times.clocks.launch, (Times{0, 10'000, 10'000, 2018, 0, 4982, 10'000, 3000}));
  ASSERT_EQ(times.syncs.size(), 1U);
  EXPECT_EQ(times.syncs[0].event, 3);
  // In the model the device is done at 20 + 20 us, 3 us of gap and 1 ns; the launch thread comes at
  // 22018 ns.
  EXPECT_EQ(times.syncs[0].duration, 43'001 - 22'018);
  EXPECT_EQ(times.clocks.sync, (std::vector<std::uint8_t>{0, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(DeviceTimes, AWaitIsPartOfTheTimesBehindIt) {
  const RawRecording recording = ops(2, 0);
  FabricatedTiming t(recording.structure);
  const auto at = FabricatedTiming::at;
  t.memset(at(1, 0), at(1, 4000), 50'000);  // launched ahead of event 2 (20 us): runs until 70 us
  t.sync(at(3, 1000), at(3, 9000));         // ahead of event 4, reached at 32 us
  t.memset(at(5, 1000), at(6, 4000), 1000);
  const DeviceTimes times = times_of(recording, t.timing, 0);
  EXPECT_EQ(times.syncs[0].duration, 38'000);
  EXPECT_EQ(times.events, (Times{0, 10'000, 20'000, 30'000, 70'000, 80'000, 90'000, 100'000}));
  EXPECT_EQ(times.activities[1].launch_start, 81'000);
  EXPECT_EQ(times.activities[1].start, 90'000);
}

TEST(DeviceTimes, FreesAreMatchedWhereBothPassesHaveThem) {
  FabricatedRecording r;
  r.begin_op("op");            // 1
  const auto a = r.alloc(64);  // 2
  const auto b = r.alloc(64);  // 3
  r.free_in_both(a);           // 4
  r.free_in_both(b);           // 5
  r.end_op();                  // 6
  const RawRecording recording = r.finish(0);
  FabricatedTiming t(recording.structure);
  DeviceTimes times = times_of(recording, t.timing, 0);
  EXPECT_EQ(times.events[4], 40'000);
  EXPECT_EQ(times.events[5], 50'000);
  // One of them stands elsewhere: both are taken to come right behind the event before.
  auto& events = t.timing.pass.events;
  std::swap(events[5].kind, events[6].kind);
  std::swap(events[5].id, events[6].id);
  t.kernel(FabricatedTiming::at(4, 1), FabricatedTiming::at(4, 5000), 10);
  times = times_of(recording, t.timing, 0);
  EXPECT_EQ(times.events[4], 30'000);
  EXPECT_EQ(times.events[5], 30'000);
  EXPECT_EQ(times.events[6], 50'000);
  ASSERT_EQ(times.activities.size(), 1U);
  EXPECT_EQ(times.activities[0].event, 3);
}

Trace gpu_trace(RawRecording recording, const TimingPass& timing) {
  recording.env.device = "cuda";
  recording.timing = timing;
  Result<Trace> trace = assemble(recording);
  EXPECT_TRUE(trace.ok()) << trace.error().text();
  const Status status = validate(*trace, "fabricated");
  EXPECT_TRUE(status.ok()) << status.error().text();
  return std::move(trace).value();
}

TEST(DeviceTimes, FillTheTraceOfAGpu) {
  RawRecording recording = ops(2, 100'000);
  recording.setup = {{50, 300, false}, {1, 1000, false}, {50, 0, true}};
  recording.adopted = 1;
  FabricatedTiming t(recording.structure);
  const auto at = FabricatedTiming::at;
  t.kernel(at(2, 0), at(2, 1000), 5000, 0);
  t.kernel(at(4, 3000), at(4, 2500), 5000, 1);
  t.sync(at(5, 1000), at(5, 2000));
  const Trace trace = gpu_trace(recording, t.timing);
  EXPECT_EQ(trace.gpu.op, (std::vector<OpId>{OpId(0), OpId(1)}));
  EXPECT_EQ(trace.gpu.event, (std::vector<EventId>{EventId(2), EventId(4)}));
  EXPECT_EQ(trace.string(trace.gpu.name[0]), "k");
  EXPECT_EQ(trace.gpu.stream[0], 7);
  EXPECT_EQ(trace.quality.adopted_allocations, 1);
  EXPECT_EQ(trace.syncs.event, (std::vector<EventId>{EventId(5)}));
  EXPECT_EQ(trace.syncs.duration, (Times{0}));
  EXPECT_EQ(trace.clock.source, "realtime");
  EXPECT_EQ(trace.clock.base_unix_ns, FabricatedTiming::kBase);
  EXPECT_EQ(trace.clock.causality_violations, 1);
  EXPECT_EQ(trace.clock.largest_clamp, 500);
  EXPECT_EQ(trace.overhead.timing.step_ns, t.timing.step_ns);
  EXPECT_EQ(trace.storages.bytes, (std::vector<Bytes>{1000}));
  EXPECT_EQ(trace.storages.rounded_bytes, (std::vector<Bytes>{1024}));
  EXPECT_EQ(trace.setup.bytes, (std::vector<Bytes>{300, 1000, 0}));
  EXPECT_EQ(trace.setup.free_of, (std::vector<std::int32_t>{-1, -1, 0}));
  EXPECT_EQ(trace.setup.storage, (std::vector<StorageId>{StorageId(), StorageId(0), StorageId()}));
}

// Rests make nothing faster where the GPU has gaps anyway: 10 of 100 us are kernels; then all of
// it.
TEST(DeviceTimes, OnlyABusyGpuGainsByRests) {
  for (const bool busy : {false, true}) {
    RawRecording recording = ops(2, 100'000);
    recording.calibration.least_compute = 930'000;
    recording.calibration.rest_gain = 140'000;
    FabricatedTiming t(recording.structure);
    const auto at = FabricatedTiming::at;
    t.kernel(at(2, 0), at(2, 1000), busy ? 400'000 : 5000, 0);
    const Trace trace = gpu_trace(recording, t.timing);
    EXPECT_EQ(trace.calibration.least_compute, busy ? 930'000 : kPpm);
    EXPECT_EQ(trace.calibration.rest_gain, busy ? 140'000 : 0);
  }
}

TEST(DeviceTimes, SetupEndsWithWhatTheWarmUpLeft) {
  FabricatedRecording r;
  r.existing(1000);                                              // serial 1, in the setup
  const auto dropped = r.existing(400, StorageClass::gradient);  // 2: goes with each step
  r.existing(600, StorageClass::gradient);                       // 3: is kept
  r.existing(8192, StorageClass::optimizer_state);               // 4
  r.free_in_both(dropped);
  RawRecording recording = r.finish(100);
  recording.setup = {{1, 1000, false}};
  FabricatedTiming t(recording.structure);
  const Trace trace = gpu_trace(recording, t.timing);
  EXPECT_EQ(trace.setup.bytes, (std::vector<Bytes>{1000, 600, 8192}));
  EXPECT_EQ(trace.setup.storage,
            (std::vector<StorageId>{StorageId(0), StorageId(2), StorageId(3)}));
}

// Somebody's tensor that no op is given is none: the recorder asks the device.
TEST(Workspaces, AreWhatTheDeviceSays) {
  FabricatedRecording r;
  r.existing(1000, StorageClass::parameter);
  r.existing(8192, StorageClass::workspace);               // row 1
  const auto used = r.existing(64, StorageClass::other);   // 2: an op reads it
  const auto saved = r.existing(64, StorageClass::other);  // 3: only saved
  r.existing(4096, StorageClass::other);                   // 4: in no op
  r.begin_layer("a");
  r.begin_op("op");
  r.use(used);
  r.end_op();
  r.pack(saved);
  r.end_layer("a");
  RawRecording recording = r.finish(100);
  FabricatedTiming t(recording.structure);
  const Trace gpu = gpu_trace(recording, t.timing);
  EXPECT_EQ(gpu.storages.storage_class,
            (std::vector{StorageClass::parameter, StorageClass::workspace, StorageClass::other,
                         StorageClass::other, StorageClass::other}));
  EXPECT_EQ(gpu.storages.evidence[1], Evidence::registered);
  EXPECT_EQ(gpu.storages.evidence[2], Evidence::none);
}

// The simulator's replay of the trace with nothing moved takes the clean step's time, whatever the
// measured times were: the recursion here is the simulator's model, waits included. (Rounding
// differs by a nanosecond a kernel or wait.)
TEST(DeviceTimes, TheSimulatorReplaysTheCleanStep) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    const int count = 5 + static_cast<int>(below(20));
    const Nanoseconds clean = 1000 + below(2'000'000);
    const RawRecording recording = ops(count, clean);
    FabricatedTiming t(recording.structure);
    const auto events = static_cast<std::int32_t>(recording.structure.events.size());
    std::int64_t free_at = FabricatedTiming::kBase;
    const unsigned length = seed % 2 == 0 ? 60'000 : 3000;
    for (std::int32_t e = 0; e + 1 < events; ++e) {
      for (std::int64_t n = below(3); n-- > 0;) {
        const std::int64_t launch = FabricatedTiming::at(e, below(8000));
        const std::int64_t start = std::max(launch + 3000, free_at + below(2000));
        const Nanoseconds duration = 500 + below(length);
        const bool in_op = e >= 2 && e % 2 == 0 && e + 3 < events;
        in_op ? t.kernel(launch, start, duration) : t.memset(launch, start, duration);
        free_at = start + duration;
      }
      if (below(10) == 0) t.sync(FabricatedTiming::at(e, 8500), FabricatedTiming::at(e, 9000));
    }
    const Trace trace = gpu_trace(recording, t.timing);
    if (HasFailure()) return;
    if (trace.gpu.size() == 0) continue;
    const simulator::StepIndex index(trace);
    const Nanoseconds replayed =
        simulator::replay(index, simulator::resident_schedule(index)).step_ns;
    const DeviceTimes times = times_of(recording, t.timing, clean);
    EXPECT_NEAR(static_cast<double>(replayed),
                static_cast<double>(step_end(times.clocks, times.scales)),
                static_cast<double>(trace.gpu.size() + trace.syncs.size() + 2));
    EXPECT_NEAR(static_cast<double>(replayed), static_cast<double>(clean),
                static_cast<double>(trace.gpu.size() + trace.syncs.size() + 2));
  }
}

TEST(TimingPassJson, GivesBackWhatItWasGiven) {
  RawRecording recording = ops(2, 0);
  FabricatedTiming t(recording.structure);
  t.kernel(FabricatedTiming::at(2), FabricatedTiming::at(3), 5000, 1);
  t.sync(FabricatedTiming::at(5), FabricatedTiming::at(5, 10));
  t.timing.pass.hook_spans.push_back({1, 2});
  t.timing.activities.activities[0].source = MemoryKind::pinned;
  t.timing.activities.zero_timestamps = 3;
  t.timing.pass.hooked = false;
  const std::string text = timing_pass_to_json(t.timing);
  const Result<TimingPass> again = timing_pass_from_json(text);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(timing_pass_to_json(*again), text);
  EXPECT_TRUE(again->pass.light);
  EXPECT_FALSE(again->pass.hooked);
  EXPECT_EQ(again->pass.events.size(), recording.structure.events.size());
  EXPECT_EQ(again->activities.activities[0].source, MemoryKind::pinned);
  for (const std::string& bad : {std::string("{}"), text.substr(1), std::string("[]")}) {
    const Result<TimingPass> refused = timing_pass_from_json(bad);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::internal);
  }
}

}  // namespace
}  // namespace stowage::profiler
