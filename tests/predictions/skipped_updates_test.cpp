// All samples under their recorded plans, with an update of each parameter behind them, or their
// own, that a step skips: the step without it is the recording again, and its period fits the one
// that takes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "simulator/hazards/skipped_update_check.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "tests/predictions/golden_answers.h"
#include "tests/support/or_throw.h"
#include "tests/support/with_updates.h"
#include "traces/trace_file.h"
#include "traces/validate.h"

namespace stowage::predictions {
namespace {

using ::testing::IsEmpty;

constexpr Nanoseconds kUpdate = 20'000;

void expect_equal(const simulator::ReplayResult& a, const simulator::ReplayResult& b) {
  EXPECT_EQ(a.peak_requested, b.peak_requested);
  EXPECT_EQ(a.peak_active, b.peak_active);
  EXPECT_EQ(a.peak_reserved, b.peak_reserved);
  EXPECT_EQ(a.step_ns, b.step_ns);
  EXPECT_EQ(a.compute_ns, b.compute_ns);
  EXPECT_EQ(a.stall_ns, b.stall_ns);
}

class SampleWithUpdates : public ::testing::TestWithParam<std::string> {
 protected:
  Trace recording = std::move(testing::or_throw(load_trace(sample_file(GetParam()))).trace);
  bool has_its_own = testing::has_updates(recording);
  Trace trace = has_its_own ? recording : testing::with_updates(recording, kUpdate);
};

TEST_P(SampleWithUpdates, IsTheRecordingWhereTheyAreSkipped) {
  if (has_its_own) GTEST_SKIP() << "was not recorded without its updates";
  ASSERT_TRUE(validate(trace, "").ok());
  const simulator::StepIndex recorded(recording);
  const simulator::StepIndex index(trace);
  const auto made =
      testing::or_throw(simulator::skip_update(index, simulator::resident_schedule(index)));
  const simulator::StepIndex skipped(made.step);
  EXPECT_EQ(skipped.trace().events.kind, recording.events.kind);
  EXPECT_EQ(skipped.trace().events.time, recording.events.time);
  EXPECT_EQ(skipped.trace().fingerprint, recording.fingerprint);
  EXPECT_LT(skipped.event_count(), index.event_count());
  expect_equal(simulator::replay(skipped, made.schedule),
               simulator::replay(recorded, simulator::resident_schedule(recorded)));
}

TEST_P(SampleWithUpdates, SkipsThemUnderEveryRecordedPlan) {
  int streaming = 0;
  int left_out = 0;
  for (const auto& [name, answer] : read_answers(GetParam())) {
    SCOPED_TRACE(name);
    const auto plan = testing::or_throw(simulator::plan_from_json(answer.plan, name));
    const auto step = testing::or_throw(simulator::unroll(trace, plan));
    const simulator::StepIndex index(step);
    const auto lowered = testing::or_throw(simulator::lower(index, plan));
    if (!step.host_updates().empty()) {
      // They begin ahead of the decision.
      const auto refused = simulator::skip_update(index, lowered.schedule);
      ASSERT_FALSE(refused.ok());
      EXPECT_THAT(refused.error().message, ::testing::HasSubstr("a step cannot skip it"));
      continue;
    }
    const auto made = testing::or_throw(simulator::skip_update(index, lowered.schedule));
    const simulator::StepIndex skipped(made.step);
    const auto hazards =
        simulator::check_skipped_update(index, lowered.schedule, skipped, made.schedule);
    EXPECT_THAT(hazards, IsEmpty()) << hazards.front().text;
    EXPECT_EQ(simulator::stays_at_end(index, lowered.schedule),
              simulator::stays_at_end(skipped, made.schedule));
    const auto taken = simulator::estimate(index, lowered.schedule);
    const auto without = simulator::estimate(skipped, made.schedule);
    EXPECT_LE(without.peak_requested, taken.peak_requested);
    EXPECT_LE(without.peak_active, taken.peak_active);
    EXPECT_LE(without.h2d_bytes, taken.h2d_bytes);
    EXPECT_LE(without.d2h_bytes, taken.d2h_bytes);
    EXPECT_LT(without.step_ns, taken.step_ns);
    streaming += plan.parameters.has_value();
    for (const simulator::Stay& stay : made.schedule.stays) left_out += stay.is_left_out;
  }
  EXPECT_GT(streaming, 0);
  EXPECT_GT(left_out, 0);
}

INSTANTIATE_TEST_SUITE_P(Recorded, SampleWithUpdates, ::testing::ValuesIn(sample_names()),
                         [](const ::testing::TestParamInfo<std::string>& sample) {
                           std::string name = sample.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace stowage::predictions
