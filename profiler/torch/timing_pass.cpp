#include "profiler/torch/timing_pass.h"

#ifdef STOWAGE_HAVE_CUPTI

#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "profiler/assembly/attribution.h"
#include "profiler/cupti/activity_recorder.h"
#include "profiler/torch/observed_step.h"
#include "profiler/torch/quiet_steps.h"
#include "profiler/torch/step_budget.h"

namespace stowage::profiler {

namespace {

class Marker final : public OpMarker {
 public:
  explicit Marker(ActivityRecorder& recorder) : recorder_(recorder) {}
  void push(std::int64_t id) override { recorder_.push(id); }
  void pop() override { recorder_.pop(); }

 private:
  ActivityRecorder& recorder_;
};

class CuptiTimingRecorder final : public TimingRecorder {
 public:
  explicit CuptiTimingRecorder(std::unique_ptr<ActivityRecorder> recorder)
      : recorder_(std::move(recorder)) {}

  Result<TimingPass> run(executor::Device& device, const StepFunctions& step,
                         const PassOptions& options) override {
    const executor::HostPool pool(device);
    const Result<std::unique_ptr<StatePager>> pager = make_pager(device, step, options);
    if (!pager) return pager.error();
    const RecordOptions recording{.host_pool = pool, .again = options.again, .pager = pager->get()};
    if (Status status = warm_up(device, step, options, recording); !status) {
      return status.error();
    }
    device.synchronize();
    if (Status status = recorder_->start(); !status) return status.error();
    const RawSpan first = run_sentinel(device);
    Result<RawPass> pass = record_steps(device, step, options, recording);
    if (!pass) return pass.error();
    const RawSpan last = run_sentinel(device);
    Result<RawActivities> activities = recorder_->stop();
    if (!activities) return activities.error();
    if (Status status = check_sentinels(*activities, first, last); !status) return status.error();
    TimingPass timing;
    timing.pass = std::move(pass).value();
    timing.step_ns = timing.pass.step_ns;
    timing.activities = of_step(std::move(activities).value(), timing.pass);
    if (Status status = restore(pager->get(), options); !status) return status.error();
    return timing;
  }

 private:
  Result<RawPass> record_steps(executor::Device& device, const StepFunctions& step,
                               const PassOptions& options, const RecordOptions& recording) {
    const RecordMode mode =
        options.everything_offloaded ? RecordMode::offload_all : RecordMode::keep;
    Marker marker(*recorder_);
    RecordOptions light = recording;
    light.light = true;
    light.marker = &marker;
    std::vector<RawPass> passes;
    QuietSteps steps(StepBudget::up_to(std::max<std::int64_t>(1, options.timing), 2, 5 * kSecond),
                     {.time_ns = options.wait_for_quiet ? 25 * kSecond : 0,
                      .aim_ns = options.clean_step_ns + options.clean_step_ns / 50});
    // The first one pays for what CUPTI sets up when it is first needed.
    for (std::int64_t i = 0; steps.wants_more(); ++i) {
      Result<RawPass> pass = observe(device, step, mode, options.warmup + i, light);
      if (!pass) return pass.error();
      if (i == 0) continue;
      steps.add(pass->step_ns);
      passes.push_back(std::move(pass).value());
      for (std::size_t row = 0; row < passes.size(); ++row) {
        if (!steps.may_be_chosen(row)) passes[row] = {};
      }
    }
    return std::move(passes[steps.step()]);
  }

  // A kernel that must be among the records, and when it ran.
  static RawSpan run_sentinel(executor::Device& device) {
    const auto now_ns = [] {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(
                 std::chrono::system_clock::now().time_since_epoch())
          .count();
    };
    RawSpan span;
    span.begin_ns = now_ns();
    static_cast<void>(at::ones({1}, at::TensorOptions(device.torch_device())));
    device.synchronize();
    span.end_ns = now_ns();
    return span;
  }

  // Without the other steps' records; their counters stay.
  static RawActivities of_step(RawActivities records, const RawPass& pass) {
    constexpr Nanoseconds kMargin = 1'000'000;
    const std::int64_t begin = pass.events.front().time_ns - kMargin;
    const std::int64_t end = pass.events.back().time_ns + kMargin;
    const auto outside = [&](const auto& record) {
      return record.end_ns < begin || record.start_ns > end;
    };
    std::erase_if(records.activities, outside);
    std::erase_if(records.launches, outside);
    std::erase_if(records.syncs, outside);
    std::vector<std::int64_t> correlations;
    for (const RawLaunch& launch : records.launches) correlations.push_back(launch.correlation);
    std::sort(correlations.begin(), correlations.end());
    std::erase_if(records.externals, [&](const RawExternal& external) {
      return !std::binary_search(correlations.begin(), correlations.end(), external.correlation);
    });
    return records;
  }

  std::unique_ptr<ActivityRecorder> recorder_;
};

}  // namespace

Result<std::unique_ptr<TimingRecorder>> TimingRecorder::create(bool cuda_has_started) {
  Result<std::unique_ptr<ActivityRecorder>> recorder = ActivityRecorder::create(cuda_has_started);
  if (!recorder) return recorder.error();
  return std::unique_ptr<TimingRecorder>(
      std::make_unique<CuptiTimingRecorder>(std::move(recorder).value()));
}

}  // namespace stowage::profiler

#else

namespace stowage::profiler {

Result<std::unique_ptr<TimingRecorder>> TimingRecorder::create(bool /*cuda_has_started*/) {
  return Error{ErrorCode::environment, "this build cannot record a GPU: it has no CUPTI", "", "",
               "build with -DSTOWAGE_WITH_CUDA=ON"};
}

}  // namespace stowage::profiler

#endif
