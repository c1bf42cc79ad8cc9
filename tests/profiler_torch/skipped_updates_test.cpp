// Recordings with a real optimizer: without its update a step is the one that was recorded without
// an optimizer, and a plan that streams its parameters has both periods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "simulator/hazards/skipped_update_check.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/support/micro_trace.h"
#include "traces/validate.h"

namespace stowage {
namespace {

using simulator::StepIndex;
using ::testing::IsEmpty;

simulator::Decisions streamed(const Trace& trace, simulator::ParameterPlan::Stream stream) {
  simulator::Decisions decisions = testing::offload_all(trace);
  decisions.parameters.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter) continue;
    decisions.parameters.shard_of[s] = trace.storages.layer[s].value;
  }
  decisions.parameters.stream = stream;
  return decisions;
}

TEST(SkippedUpdates, AStepWithoutThemIsTheOneWithoutAnOptimizer) {
  for (const char* const model :
       {"mlp:layers=3,width=32", "gpt2:layers=2,width=32,seq=8,vocab=64"}) {
    const auto none = testing::record_model(model, 2, "none");
    for (const char* const optimizer : {"sgd", "adamw"}) {
      SCOPED_TRACE(std::string(model) + " " + optimizer);
      const auto recorded = testing::record_model(model, 2, optimizer);
      const StepIndex index(*recorded.trace);
      const auto made = simulator::skip_update(index, simulator::resident_schedule(index));
      ASSERT_TRUE(made.ok()) << made.error().text();
      const StepIndex skipped(made->step);
      EXPECT_TRUE(validate(skipped.trace(), "").ok());
      EXPECT_LT(skipped.event_count(), index.event_count());
      EXPECT_EQ(skipped.trace().events.kind, none.trace->events.kind);
      EXPECT_EQ(skipped.trace().fingerprint, none.trace->fingerprint);
      // The optimizer's state is on the device all the time, and nothing else is besides.
      const StepIndex without(*none.trace);
      const Bytes state = skipped.bytes_at_begin() - without.bytes_at_begin();
      EXPECT_GT(state, 0);  // momentum, moments
      EXPECT_EQ(simulator::replay(skipped, made->schedule).peak_requested - state,
                simulator::replay(without, simulator::resident_schedule(without)).peak_requested);
    }
  }
}

TEST(SkippedUpdates, APlanThatStreamsHasBothPeriods) {
  for (const char* const optimizer : {"sgd", "adamw"}) {
    const auto recorded =
        testing::record_model("gpt2:layers=2,width=32,seq=8,vocab=64", 2, optimizer);
    const StepIndex index(*recorded.trace);
    for (const auto stream :
         {simulator::ParameterPlan::Stream::always, simulator::ParameterPlan::Stream::forward}) {
      for (const int prefetch : {-1, 0, 1, 2}) {
        SCOPED_TRACE(std::string(optimizer) + ", prefetch " + std::to_string(prefetch));
        simulator::Decisions decisions = streamed(*recorded.trace, stream);
        if (prefetch >= 0) decisions.parameters.prefetch = prefetch;
        const auto lowered = simulator::lower(index, decisions);
        ASSERT_TRUE(lowered.ok()) << lowered.error().text();
        const auto made = simulator::skip_update(index, lowered->schedule);
        ASSERT_TRUE(made.ok()) << made.error().text();
        const StepIndex skipped(made->step);
        const auto hazards =
            simulator::check_skipped_update(index, lowered->schedule, skipped, made->schedule);
        EXPECT_THAT(hazards, IsEmpty()) << hazards.front().text;
        EXPECT_LE(simulator::replay(skipped, made->schedule).peak_requested,
                  simulator::replay(index, lowered->schedule).peak_requested);
        EXPECT_LT(made->schedule.instructions.size(), lowered->schedule.instructions.size());
      }
    }
  }
}

}  // namespace
}  // namespace stowage
