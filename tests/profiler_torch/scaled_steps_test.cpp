// Steps under a gradient scaler, with a plan beside the same without: those whose gradients
// overflow are skipped in both, and the scale is the same ever after.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

using simulator::ParameterPlan;
using testing::or_throw;
using testing::Precision;
using testing::TwinSessions;

constexpr const char* kGpt2 = "gpt2:layers=2,width=32,seq=8,vocab=64";
constexpr const char* kScaler = "init=1024,growth=2,backoff=0.5,interval=3";

float scale_of(const executor::TrainingStep& step) {
  const auto buffers = step.buffers();
  return buffers[buffers.size() - 2].tensor.item<float>();
}

// So large that fp32 has no gradient with it. On a GPU, whose numbers are others, none is so for
// sure.
float overflowing() {
  return testing::test_device_name() == "cpu" ? std::numeric_limits<float>::max()
                                              : std::numeric_limits<float>::infinity();
}

// Plants an overflow: nothing but the scale of this step is another one.
void overflow(executor::TrainingStep& step, float& before) {
  const auto buffers = step.buffers();
  before = scale_of(step);
  const at::Tensor scale = buffers[buffers.size() - 2].tensor;
  scale.fill_(overflowing());
}

// All that can be decided about model state and saved tensors at once.
simulator::Schedule all_away(const TwinSessions& twins) {
  const Trace& trace = twins.trace();
  simulator::Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  for (auto& each : decisions.saved) each.decision = simulator::Decision::offload;
  decisions.optimizer.state_streams.assign(trace.storages.size(), false);
  decisions.gradients.at_home.assign(trace.storages.size(), false);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const StorageClass own = trace.storages.storage_class[s];
    decisions.optimizer.state_streams[s] = own == StorageClass::optimizer_state;
    decisions.gradients.at_home[s] = own == StorageClass::gradient;
  }
  return or_throw(simulator::lower(twins.index(), decisions)).schedule;
}

void expect_alike(TwinSessions& twins, executor::PlannedStep& plan, const std::string& steps) {
  std::int64_t k = 0;
  for (const char each : steps) {
    SCOPED_TRACE(k);
    float before = 0;
    if (each == 's') {
      overflow(twins.planned(), before);
      overflow(twins.twin(), before);
    }
    const auto before_parameters = testing::bits_of(twins.device(), plan.values());
    twins.expect_same_step(plan, k++);
    const bool is_same = before_parameters == testing::bits_of(twins.device(), plan.values());
    EXPECT_EQ(is_same, each == 's');
    EXPECT_EQ(scale_of(twins.planned()), scale_of(twins.twin()));
    if (each == 's') {
      EXPECT_EQ(scale_of(twins.twin()), overflowing() / 2);
      // As it was, for the next one.
      for (executor::TrainingStep* step : {&twins.planned(), &twins.twin()}) {
        const auto buffers = step->buffers();
        buffers[buffers.size() - 2].tensor.fill_(before);
      }
    }
  }
}

TEST(ScaledSteps, StreamedParametersAreBitwise) {
  for (const char* const optimizer :
       {"sgd", "adamw", "adamw:clip=0.01", "sgd:clip=0.01,momentum=0.9"}) {
    SCOPED_TRACE(optimizer);
    TwinSessions twins(kGpt2, 2, optimizer, Precision("fp32", "", kScaler));
    const auto plan = twins.plan(twins.stream(ParameterPlan::Stream::always, 1));
    expect_alike(twins, *plan, "tsttsst");
  }
}

TEST(ScaledSteps, GradientsAndStateOnTheHostAreBitwise) {
  for (const char* const optimizer :
       {"sgd", "adamw", "adamw:clip=0.01", "sgd:clip=0.01,momentum=0.9"}) {
    SCOPED_TRACE(optimizer);
    TwinSessions twins(kGpt2, 2, optimizer, Precision("fp32", "bf16", kScaler));
    const auto plan = twins.plan(all_away(twins));
    expect_alike(twins, *plan, "tsttsst");
  }
}

TEST(ScaledSteps, InMicroBatchesAreBitwise) {
  for (const char* const segment : {"head", "*"}) {
    SCOPED_TRACE(segment);
    TwinSessions twins(kGpt2, 2, "adamw", Precision("fp32", "fp16", kScaler), {{segment, 2}});
    const auto plan = twins.plan(all_away(twins));
    expect_alike(twins, *plan, "tsttsst");
  }
}

}  // namespace
}  // namespace stowage
