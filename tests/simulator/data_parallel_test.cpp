// A recorded step over ranks: buckets and times by hand, and what must hold for any step.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/network/data_parallel.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// Three parameters v (200 bytes), x (300), w (500), whose gradients come in this order. [times]
//   step_begin, old gradients freed, forward [1000], backward:
//   op makes g(v) [1100], op makes g(x) [1300], op makes g(w) [1900], backward_end [1950],
//   with an optimizer three updates of 100 [2250], step_end.
Trace three_gradients(bool updates, const std::string& collective = {}) {
  MicroTrace t;
  const std::vector<std::pair<StorageId, Nanoseconds>> parameters = {
      {t.existing(200), 100}, {t.existing(300), 200}, {t.existing(500), 600}};
  std::vector<StorageId> old;
  for (const auto& [parameter, time] : parameters) {
    static_cast<void>(t.view(parameter));
    old.push_back(t.gradient_before(parameter));
  }
  for (const StorageId gradient : old) t.free(gradient);
  t.begin_layer("L");
  t.begin_op();
  for (const auto& [parameter, time] : parameters) t.read(parameter);
  t.run(1000).end_op();
  t.end_layer("L");
  t.backward();
  for (const auto& [parameter, time] : parameters) {
    t.begin_layer_backward("L" + std::to_string(time));
    t.begin_op();
    t.make_gradient(parameter);
    t.run(time).end_op();
    t.accumulate(parameter);
    t.end_layer_backward("L" + std::to_string(time));
  }
  if (!collective.empty()) {
    t.begin_op(collective);
    t.end_op();
  }
  t.run(50);
  t.optimizer();
  for (const auto& [parameter, time] : parameters) {
    if (updates) t.update(parameter, 100);
  }
  return t.finish();
}

// One rank a host; 250 of 500 bytes take 250 ns and 50 more.
ReductionModel slow_model() {
  ReductionModel model;
  model.network.ranks_per_host = 1;
  model.network.bytes_per_second = 1'000'000'000;
  model.network.latency = 50;
  model.buckets = {400, 400};
  return model;
}

DataParallel over(const Trace& trace, const Plan& plan, const ReductionModel& model,
                  const std::vector<std::int64_t>& ranks) {
  const StepIndex index(trace);
  const auto lowered = lower(index, plan);
  EXPECT_TRUE(lowered.ok()) << (lowered ? "" : lowered.error().text());
  if (!lowered) return {};
  auto made = data_parallel(index, plan, replay(index, lowered->schedule), model, ranks);
  EXPECT_TRUE(made.ok()) << (made ? "" : made.error().text());
  return made ? std::move(made).value() : DataParallel{};
}

// v and x fill the first bucket at 1300, w the second one at 1900; backward ends at 1950.
//   2 ranks: 2 x (50 + 250) each: 1300-1900, 1900-2500: 550 longer.
//   4 ranks: 6 x (50 + 125) each: 1300-2350, 2350-3400: 1450 longer.
TEST(DataParallel, TheTailBehindBackwardIsExposed) {
  const Trace trace = three_gradients(true);
  const DataParallel made = over(trace, {}, slow_model(), {1, 2, 4});
  ASSERT_EQ(made.buckets.size(), 2U);
  EXPECT_EQ(made.buckets[0].bytes, 500);
  EXPECT_EQ(made.buckets[0].gradients, 2);
  EXPECT_EQ(made.buckets[1].bytes, 500);
  EXPECT_EQ(made.buckets[1].gradients, 1);
  EXPECT_EQ(made.ready, (std::vector<Nanoseconds>{1300, 1900}));
  EXPECT_EQ(made.backward_end_ns, 1950);
  ASSERT_EQ(made.steps.size(), 3U);
  EXPECT_EQ(made.steps[0].step_ns, 2250);
  EXPECT_EQ(made.steps[0].all_reduce_ns, 0);
  EXPECT_EQ(made.steps[0].efficiency, kPpm);
  EXPECT_EQ(made.steps[1].all_reduce_ns, 1200);
  EXPECT_EQ(made.steps[1].exposed_ns, 550);
  EXPECT_EQ(made.steps[1].step_ns, 2800);
  EXPECT_EQ(made.steps[1].efficiency, 803'571);  // 2250 / 2800
  EXPECT_EQ(made.steps[1].hosts, 2);
  EXPECT_EQ(made.steps[2].all_reduce_ns, 2100);
  EXPECT_EQ(made.steps[2].exposed_ns, 1450);
  EXPECT_EQ(made.steps[2].step_ns, 3700);
}

// 250 bytes at 500 a nanosecond: the last bucket is done 1 ns behind its gradient, and waits for
// nobody.
TEST(DataParallel, WhatIsDoneBesideBackwardCostsNothing) {
  ReductionModel model = slow_model();
  model.network.bytes_per_second = 500'000'000'000;
  model.network.latency = 0;
  const DataParallel made = over(three_gradients(true), {}, model, {2});
  EXPECT_EQ(made.steps[0].all_reduce_ns, 2);
  EXPECT_EQ(made.steps[0].exposed_ns, 0);
  EXPECT_EQ(made.steps[0].step_ns, 2250);
}

TEST(DataParallel, BucketsHoldEachGradientOnceMore) {
  const Trace trace = three_gradients(true);
  const StepIndex index(trace);
  const ReplayResult alone = replay(index, resident_schedule(index));
  const DataParallel made = over(trace, {}, slow_model(), {2});
  EXPECT_EQ(made.bucket_bytes, 1000);
  EXPECT_EQ(made.peak_requested, alone.peak_requested + 1000);
  EXPECT_EQ(made.peak_active, alone.peak_active + 1000);
  EXPECT_EQ(made.peak_reserved, -1);
}

// Without an optimizer gradients go home as they come: 1100-1300, 1300-1600, 1900-2400. Over ranks
// they are all there until they are reduced, 2500, and leave one after the other behind that.
TEST(DataParallel, GradientsThatLeaveWaitForTheirReduction) {
  const Trace trace = three_gradients(false);
  Plan plan;
  plan.gradients = {{"*", GradientPlace::host}};
  const DataParallel made = over(trace, plan, slow_model(), {1, 2});
  EXPECT_EQ(made.steps[0].step_ns, 2400);
  EXPECT_EQ(made.steps[1].exposed_ns, 550);
  EXPECT_EQ(made.steps[1].step_ns, 3500);

  const auto grouped = gradient_buckets(trace);
  ASSERT_TRUE(grouped.ok());
  const EventId end = grouped->waited_for;
  const StepIndex reducing(Step(trace).with_gradients_reduced_at(end));
  const auto lowered = lower(reducing, plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  EXPECT_EQ(lowered->schedule.tenants.size(), 3U);
  for (const Instruction& each : lowered->schedule.instructions) EXPECT_GT(each.anchor.event, end);
  EXPECT_TRUE(find_hazards(reducing, lowered->schedule).empty());
}

// A GPU's launch thread takes 10 ns to the kernel of the gradient, 100, which is done at 110, as
// backward is, and 1000 more to a last kernel of 10. 2 x (50 + 50) end at 310, when the last kernel
// is not launched yet: the wait costs nothing. 2 x (950 + 50) end at 2110, and it is late.
TEST(DataParallel, AWaitHidesBehindTheLaunchThread) {
  MicroTrace t;
  const StorageId parameter = t.existing(100);
  t.backward();
  t.begin_op();
  t.kernel(100);
  t.run(10).end_op();
  t.accumulate(parameter);
  t.optimizer();
  t.begin_op();
  t.kernel(10);
  t.run(1000).end_op();
  const Trace trace = t.finish();
  ReductionModel model = slow_model();
  const RankedStep hidden = over(trace, {}, model, {2}).steps.at(0);
  EXPECT_EQ(hidden.exposed_ns, 200);
  EXPECT_EQ(hidden.step_ns, 1020);
  model.network.latency = 950;
  const RankedStep late = over(trace, {}, model, {2}).steps.at(0);
  EXPECT_EQ(late.exposed_ns, 2000);
  EXPECT_EQ(late.step_ns, 2120);
}

// A first limit of 100 bytes, then of 250. In order: a 60, b 50 (110: closed), c 200, h of another
// type 30, d 60 (260: closed), k of h's type 80 (110: that type's first), e 10, f 20 of a third.
TEST(GradientBuckets, AreClosedByTheirLimitsByType) {
  MicroTrace t;
  std::vector<StorageId> parameters;
  const std::vector<std::pair<Bytes, DType>> kinds = {
      {60, DType::float32}, {50, DType::float32},  {200, DType::float32}, {30, DType::bfloat16},
      {60, DType::float32}, {80, DType::bfloat16}, {10, DType::float32},  {20, DType::float16}};
  for (const auto& [bytes, dtype] : kinds) {
    parameters.push_back(t.existing(bytes));
    static_cast<void>(t.view(parameters.back(), 0, 1, dtype));
  }
  t.backward();
  t.accumulate(parameters.back());  // not the last time
  for (const StorageId parameter : parameters) t.accumulate(parameter);
  t.optimizer();
  const Trace trace = t.finish();
  const auto made = gradient_buckets(trace, {100, 250});
  ASSERT_TRUE(made.ok()) << made.error().text();
  std::string text;
  for (const GradientBucket& bucket : made->buckets) {
    text += std::string(name_of(bucket.dtype)) + ":" + std::to_string(bucket.bytes) + "x" +
            std::to_string(bucket.gradients) + " ";
  }
  EXPECT_EQ(text, "float32:110x2 float32:260x2 bfloat16:110x2 float32:10x1 float16:20x1 ");
  EXPECT_EQ(trace.events.kind[made->waited_for.index()], EventKind::backward_end);
}

TEST(GradientBuckets, RefuseWhatIsNotOneDevicesTraining) {
  const auto error = [](const Trace& trace) {
    const auto made = gradient_buckets(trace);
    return made ? std::string("none") : made.error().text();
  };
  MicroTrace inference;
  inference.alloc(100);
  EXPECT_EQ(error(inference.finish()),
            "ranks cannot be simulated: the step has no gradients to reduce (record a training "
            "step)");
  MicroTrace silent;
  silent.gradient_before(silent.existing(100));
  EXPECT_EQ(error(silent.finish()),
            "ranks cannot be simulated: the recording does not say when gradients accumulate "
            "(record the step again)");
  EXPECT_EQ(error(three_gradients(true, "c10d::allreduce_")),
            "ranks cannot be simulated: the step was recorded over several ranks "
            "(c10d::allreduce_) (record it on one device, without DistributedDataParallel)");
  MicroTrace early;
  const StorageId a = early.existing(100);
  const StorageId b = early.existing(100);
  early.backward();
  early.accumulate(a);
  early.optimizer();
  early.update(a);
  early.backward();
  early.accumulate(b);
  early.optimizer();
  EXPECT_NE(error(early.finish()).find("updates a parameter ahead of the end of its last backward"),
            std::string::npos);
}

// From slow to fast; `is_alone`: nothing moves, so that copies and compute do not slow each other.
void check_networks(const Trace& trace, const Plan& plan, ReductionModel model, std::int64_t ranks,
                    bool is_alone) {
  const StepIndex index(trace);
  const auto lowered = lower(index, plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  const ReplayResult alone = replay(index, lowered->schedule);
  RankedStep slower;
  slower.exposed_ns = slower.step_ns = std::numeric_limits<Nanoseconds>::max();
  for (const std::int64_t megabytes : {1, 100, 10'000}) {
    model.network.bytes_per_second = megabytes * 1'000'000;
    model.network.host_bytes_per_second = megabytes * 3'000'000;
    const DataParallel made = over(trace, plan, model, {ranks, 1});
    ASSERT_EQ(made.steps.size(), 2U);
    const RankedStep& step = made.steps[0];
    EXPECT_EQ(made.steps[1].step_ns, alone.step_ns) << "one rank";
    EXPECT_LE(step.exposed_ns, step.all_reduce_ns);
    EXPECT_LE(step.exposed_ns, slower.exposed_ns) << "a faster network";
    if (is_alone) {
      EXPECT_GE(step.step_ns, alone.step_ns);
      EXPECT_LE(step.step_ns, alone.step_ns + step.exposed_ns);
      EXPECT_LE(step.step_ns, slower.step_ns) << "a faster network";
    }
    slower = step;
  }
}

TEST(DataParallel, HoldsOnRandomStepsPlansAndNetworks) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto number = static_cast<std::int64_t>(seed);
    testing::RandomTraceOptions options;
    options.ops = static_cast<int>(4 + seed % 14);
    options.device_times = seed % 2 == 0;
    options.parameters = true;
    const Trace trace = testing::random_trace(seed, options);
    ReductionModel model;
    model.buckets = {1 + number * 13, 1 + number * 29};
    model.network.ranks_per_host = 1 + number % 4;
    const std::int64_t ranks = model.network.ranks_per_host * (2 + number % 7);
    if (!gradient_buckets(trace, model.buckets)) continue;  // none, or updated early
    ++tried;
    check_networks(trace, {}, model, ranks, true);
    Plan leaving;
    leaving.gradients = {{"*", GradientPlace::host}};
    leaving.saved.emplace_back();
    leaving.saved.back().decision = Decision::offload;
    check_networks(trace, leaving, model, ranks, false);
  }
  EXPECT_GE(tried, 150);
}

}  // namespace
}  // namespace stowage::simulator
