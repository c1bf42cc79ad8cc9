// Recording a step on a GPU: the real CUPTI, the real device. A test a process (ctest runs them
// so): CUPTI must be there before CUDA starts.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/torch/gpu_totals.h"
#include "cli/torch/session.h"
#include "executor/device/cuda/cuda_device.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/record.h"
#include "profiler/torch/timing_pass.h"
#include "tests/support/gpu_state.h"
#include "traces/validate.h"

namespace stowage {
namespace {

class GpuRecording : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = profiler::TimingRecorder::create();
    STOWAGE_NEEDS_GPU(executor::cuda_present());
    ASSERT_TRUE(made.ok()) << made.error().text();
    recorder = std::move(made).value();
  }

  std::unique_ptr<cli::Session> session(const std::string& spec, std::int64_t batch) {
    cli::RunFlags flags;
    flags.device = "cuda";
    flags.batch = batch;
    cli::CommandFiles files;
    auto request = cli::make_request(spec, flags, files);
    EXPECT_TRUE(request.ok()) << request.error().text();
    auto made = cli::Session::create(*request);
    EXPECT_TRUE(made.ok()) << made.error().text();
    return std::move(made).value();
  }

  std::unique_ptr<profiler::TimingRecorder> recorder;
};

TEST_F(GpuRecording, ASecondSubscriberIsRefusedInWords) {
  const auto second = profiler::TimingRecorder::create();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::environment);
  EXPECT_NE(second.error().message.find("already taken"), std::string::npos)
      << second.error().text();
  EXPECT_NE(second.error().message.find("stowage"), std::string::npos) << second.error().text();
}

TEST_F(GpuRecording, AttributesTheDevicesTime) {
  const auto run = session("gpt2:layers=2,width=128,seq=128,vocab=512", 4);
  const profiler::StepFunctions step = run->functions();
  const profiler::PassOptions options;
  auto timing = recorder->run(run->device(), step, options);
  ASSERT_TRUE(timing.ok()) << timing.error().text();
  EXPECT_EQ(timing->activities.dropped_records, 0);
  EXPECT_EQ(timing->activities.zero_timestamps, 0);
  EXPECT_GT(timing->activities.activities.size(), 100U);
  EXPECT_FALSE(timing->activities.syncs.empty()) << "the recorder itself waits for the device";
  EXPECT_TRUE(timing->activities.library.starts_with("13.")) << timing->activities.library;
  // Forward and backward run on threads of their own.
  EXPECT_EQ(timing->pass.threads.size(), 2U);

  profiler::RawRecording raw;
  raw.timing = std::move(timing).value();
  auto clean = profiler::run_clean_pass(run->device(), step, options);
  ASSERT_TRUE(clean.ok()) << clean.error().text();
  raw.clean = *clean;
  auto observed = profiler::run_observed_passes(run->device(), step, options);
  ASSERT_TRUE(observed.ok()) << observed.error().text();
  raw.structure = std::move(observed->structure);
  raw.offload_all = std::move(observed->offload_all);
  raw.setup = std::move(observed->setup);
  raw.run = run->run();
  raw.env = run->environment();
  for (LinkCurve* curve : {&raw.calibration.d2h, &raw.calibration.h2d}) {
    curve->bytes = {4096};
    curve->bytes_per_second = curve->bytes_per_second_p10 = {1'000'000'000};
  }
  const auto trace = profiler::assemble(raw);
  ASSERT_TRUE(trace.ok()) << trace.error().text();
  const Status status = validate(*trace, "recorded");
  ASSERT_TRUE(status.ok()) << status.error().text();
  const cli::GpuTotals totals = cli::gpu_totals(*trace);
  EXPECT_GE(totals.attributed, 0.995);
  EXPECT_GT(totals.kernels, 100);
  // All but the loss's copy to the host, which the step makes itself, belongs to an op.
  for (std::size_t i = 0; i < trace->gpu.size(); ++i) {
    const bool is_loss = trace->gpu.kind[i] == GpuKind::memcpy && trace->gpu.bytes[i] == 4;
    EXPECT_TRUE(trace->gpu.op[i].valid() || is_loss) << trace->string(trace->gpu.name[i]);
  }
  EXPECT_EQ(trace->quality.join_mismatches, 0);
  EXPECT_GT(trace->setup.size(), 0U);
}

// As a library's user records: all passes in one process.
TEST_F(GpuRecording, InOneProcessHasKernelTimes) {
  const auto run = session("gpt2:layers=2,width=128,seq=128,vocab=512", 4);
  std::vector<std::string> warnings;
  profiler::RecordSettings settings;
  settings.timing = recorder.get();
  settings.warn = [&](const std::string& line) { warnings.push_back(line); };
  const auto trace = profiler::record(run->device(), run->functions(), run->run(), settings);
  ASSERT_TRUE(trace.ok()) << trace.error().text();
  EXPECT_TRUE(validate(*trace, "trace").ok());
  EXPECT_GT(trace->gpu.size(), 100U);
  EXPECT_GT(trace->overhead.timing.step_ns, 0);
  EXPECT_TRUE(trace->env.cupti.starts_with("13.")) << trace->env.cupti;
  EXPECT_TRUE(warnings.empty());

  settings.timing = nullptr;
  const auto without = profiler::record(run->device(), run->functions(), run->run(), settings);
  ASSERT_TRUE(without.ok()) << without.error().text();
  EXPECT_EQ(without->gpu.size(), 0U);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("no kernel times"), std::string::npos);
}

}  // namespace
}  // namespace stowage
