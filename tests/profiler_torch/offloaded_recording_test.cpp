// A step that runs out of memory is recorded with everything offloaded; its trace is the one that a
// larger device would have given.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/torch/session.h"
#include "executor/planned_step.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/passes.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/or_throw.h"
#include "tests/support/schedule_parts.h"
#include "traces/validate.h"

namespace stowage {
namespace {

using profiler::PassOptions;
using profiler::RawRecording;
using testing::or_throw;

const PassOptions kPasses{.warmup = 2, .steps = 2, .structure = 1};
const PassOptions kOffloaded{.warmup = 2, .steps = 2, .structure = 1, .everything_offloaded = true};

std::unique_ptr<cli::Session> session_of(const std::string& spec, std::int64_t batch,
                                         const std::string& optimizer) {
  cli::RunFlags flags;
  flags.device = testing::test_device_name();
  flags.batch = batch;
  flags.optimizer = optimizer;
  flags.threads = 1;
  cli::CommandFiles files;
  return or_throw(cli::Session::create(or_throw(cli::make_request(spec, flags, files))));
}

std::shared_ptr<const Trace> recorded(cli::Session& session, bool offloaded) {
  RawRecording raw;
  const profiler::StepFunctions step = session.functions();
  if (offloaded) {
    raw.clean.out_of_memory = true;
  } else {
    raw.clean = or_throw(profiler::run_clean_pass(session.device(), step, kPasses));
  }
  profiler::ObservedPasses observed = or_throw(
      profiler::run_observed_passes(session.device(), step, offloaded ? kOffloaded : kPasses));
  raw.structure = std::move(observed.structure);
  raw.offload_all = std::move(observed.offload_all);
  raw.run = session.run();
  raw.env = session.environment();
  for (LinkCurve* curve : {&raw.calibration.d2h, &raw.calibration.h2d}) {
    curve->bytes = {4096, 1 << 20};
    curve->bytes_per_second = {500'000'000, 2'000'000'000};
    curve->bytes_per_second_p10 = curve->bytes_per_second;
  }
  auto trace = std::make_shared<Trace>(or_throw(profiler::assemble(raw)));
  or_throw(validate(*trace, "recorded"));
  return trace;
}

void expect_equal(const Trace& kept, const Trace& offloaded) {
  EXPECT_EQ(offloaded.fingerprint, kept.fingerprint);
  EXPECT_EQ(offloaded.strings, kept.strings);
  EXPECT_EQ(offloaded.lists, kept.lists);
  EXPECT_EQ(offloaded.events.kind, kept.events.kind);
  EXPECT_EQ(offloaded.events.ref, kept.events.ref);
  EXPECT_EQ(offloaded.events.op, kept.events.op);
  EXPECT_EQ(offloaded.storages.bytes, kept.storages.bytes);
  EXPECT_EQ(offloaded.storages.storage_class, kept.storages.storage_class);
  EXPECT_EQ(offloaded.storages.alloc_event, kept.storages.alloc_event);
  EXPECT_EQ(offloaded.storages.free_event, kept.storages.free_event);
  EXPECT_EQ(offloaded.storages.natural_free_event, kept.storages.natural_free_event);
  EXPECT_EQ(offloaded.saved.tensor, kept.saved.tensor);
  EXPECT_EQ(offloaded.unpacks.released_event, kept.unpacks.released_event);
  EXPECT_EQ(offloaded.uses.tensor, kept.uses.tensor);
  EXPECT_EQ(offloaded.uses.mode, kept.uses.mode);
  EXPECT_EQ(offloaded.allocator.requested, kept.allocator.requested);
  EXPECT_EQ(offloaded.peaks.requested, kept.peaks.requested);
  EXPECT_EQ(offloaded.peaks.event, kept.peaks.event);
  EXPECT_TRUE(kept.schema.features.empty());
  EXPECT_EQ(offloaded.schema.features, std::vector<std::string>{profiler::kOffloadedRecording});
}

struct StepOutcome {
  double loss = 0;
  Bytes peak = 0;
  std::vector<std::vector<char>> gradients;
};

StepOutcome run(cli::Session& session, executor::PlannedStep* plan) {
  executor::TrainingStep& step = session.step();
  executor::Device& device = session.device();
  step.prepare(3);
  device.synchronize();
  device.reset_peak();
  StepOutcome outcome;
  if (plan != nullptr) plan->begin_step();
  outcome.loss = step.step();
  if (plan != nullptr) {
    const auto report = plan->end_step();
    EXPECT_TRUE(report.ok() && report->on_plan);
    if (report) outcome.peak = report->memory.peak_requested;
  } else {
    outcome.peak = device.memory().peak_requested;
  }
  for (const executor::NamedTensor& each : step.gradients()) {
    outcome.gradients.push_back(testing::fetch(device, each.tensor));
  }
  return outcome;
}

// Every `every`-th saved tensor leaves; the peak is the predicted one, the gradients are bitwise.
void expect_exact_plans(cli::Session& session, const std::shared_ptr<const Trace>& trace) {
  const simulator::StepIndex index(*trace);
  const StepOutcome resident = run(session, nullptr);
  EXPECT_EQ(resident.peak, trace->peaks.requested.front());
  for (const std::size_t every : {1U, 2U, 3U}) {
    simulator::Decisions decisions;
    decisions.saved.resize(trace->saved.size());
    for (std::size_t i = 0; i < decisions.saved.size(); i += every) {
      decisions.saved[i].decision = simulator::Decision::offload;
    }
    const auto lowering = or_throw(simulator::lower(index, decisions));
    EXPECT_FALSE(testing::offloads_of(lowering.schedule).empty());
    auto plan = or_throw(executor::PlannedStep::create(
        session.device(), trace, testing::in_test_memory(lowering.schedule), {}));
    const StepOutcome planned = run(session, plan.get());
    EXPECT_EQ(planned.peak, simulator::replay(index, lowering.schedule).peak_requested);
    EXPECT_EQ(planned.loss, resident.loss);
    EXPECT_TRUE(planned.gradients == resident.gradients);
  }
}

void check(const std::string& spec, std::int64_t batch, const std::string& optimizer) {
  std::unique_ptr<cli::Session> session = session_of(spec, batch, optimizer);
  const auto kept = recorded(*session, false);
  expect_equal(*kept, *recorded(*session, true));
  // One that has made no step yet: its state is made while it is recorded, and has no home.
  session.reset();  // what it has on the device would be in the trace
  session = session_of(spec, batch, optimizer);
  const auto offloaded = recorded(*session, true);
  expect_equal(*kept, *offloaded);
  EXPECT_EQ(offloaded->storages.parameter, kept->storages.parameter);
  EXPECT_EQ(offloaded->tensors.storage, kept->tensors.storage);
  if (optimizer == "none") expect_exact_plans(*session, offloaded);
}

TEST(OffloadedRecording, IsTheOrdinaryTraceOfGpt2) {
  check("gpt2:layers=3,width=64,seq=32,vocab=128", 2, "none");
}

TEST(OffloadedRecording, IsTheOrdinaryTraceOfGpt2WithEfficientAttentionAndAdamw) {
  check("gpt2:layers=2,width=64,seq=32,vocab=128,attention=efficient", 2, "adamw");
}

// Where updates are in backward, state comes to the device and leaves in the midst of it.
TEST(OffloadedRecording, IsTheOrdinaryTraceOfUpdatesInBackward) {
  check("mlp:layers=4,width=64", 16, "sgd:update=backward");
  check("gpt2:layers=2,width=64,seq=32,vocab=128", 2, "adamw:master=fp32,update=backward");
}

TEST(OffloadedRecording, IsTheOrdinaryTraceOfMlp) {
  check("mlp:layers=4,width=64", 16, "none");
}

// The recorder itself needs no more memory than the step with everything offloaded.
TEST(OffloadedRecording, StaysWithinALimitThatTheStepDoesNotFit) {
  if (testing::on_gpu()) GTEST_SKIP() << "a GPU's limit is on segments, see tests/gpu";
  const auto session = session_of("mlp:layers=6,width=64", 64, "none");
  const auto kept = recorded(*session, false);
  const Bytes peak = kept->peaks.requested.front();
  const Bytes offloaded_peak = kept->overhead.offload_all.peak_requested;
  ASSERT_LT(offloaded_peak, peak);
  session->set_memory_limit(offloaded_peak);
  EXPECT_THROW(session->step().run(1), c10::OutOfMemoryError);
  const auto offloaded = recorded(*session, true);
  session->set_memory_limit(0);
  expect_equal(*kept, *offloaded);
}

}  // namespace
}  // namespace stowage
