#include "profiler/torch/woken_launch.h"

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "executor/device/host_arena.h"
#include "executor/kept_tensor.h"
#include "executor/saved_tensor_engine.h"
#include "executor/step_driver.h"
#include "profiler/torch/stopwatch.h"
#include "simulator/machine/launch_pace.h"
#include "simulator/step/step_index.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;
using Clock = std::chrono::steady_clock;

constexpr Bytes kWaitBytes = Bytes{1} << 20;
constexpr int kWaitCopies = 8;  // as long as a plan's wait

// Keeps every saved tensor, behind a copy that the thread which saves it waits for.
class WaitingDriver final : public executor::StepDriver {
 public:
  WaitingDriver(executor::Device& device, std::byte* host, const std::byte* memory)
      : device_(device), host_(host), memory_(memory), installed_(*this) {}
  WaitingDriver(const WaitingDriver&) = delete;
  WaitingDriver& operator=(const WaitingDriver&) = delete;

  WaitingStep take() { return std::exchange(step_, {}); }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override {
    return std::make_unique<Hooks>(*this);
  }
  void layer_event(executor::LayerEvent /*event*/, std::string_view /*path*/) override {}
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(executor::UpdateEvent /*event*/, const at::Tensor& /*parameter*/) override {
  }

 private:
  class Hooks final : public torch::autograd::SavedVariableHooks {
   public:
    explicit Hooks(WaitingDriver& driver) : driver_(driver) {}
    void call_pack_hook(const at::Tensor& tensor) override {
      kept_ = executor::KeptTensor(tensor);
      driver_.wait();
    }
    at::Tensor call_unpack_hook() override { return kept_.get(); }

   private:
    WaitingDriver& driver_;
    executor::KeptTensor kept_;
  };

  void wait() {
    if (std::this_thread::get_id() != thread_) return;  // a backward that saves
    if (step_.waits++ > 0) step_.worked_ns.push_back(time_since(resumed_));
    executor::CopyTicket last;
    for (int i = 0; i < kWaitCopies; ++i) {
      last = device_.copy_async(CopyLane::d2h, host_, memory_, kWaitBytes);
    }
    device_.wait_blocking(last);
    resumed_ = Clock::now();
  }

  executor::Device& device_;
  std::byte* host_;
  const std::byte* memory_;
  const std::thread::id thread_ = std::this_thread::get_id();
  WaitingStep step_;
  Clock::time_point resumed_;
  executor::InstalledDriver installed_;
};

}  // namespace

Result<std::vector<WaitingStep>> measure_waiting_steps(executor::Device& device,
                                                       const StepFunctions& step,
                                                       std::int64_t first_index,
                                                       const StepBudget& budget) {
  STOWAGE_ASSERT(budget.least > 0);
  executor::install_saved_tensor_engine();
  Result<executor::HostArena> arena = device.host_arena(kWaitBytes);
  if (!arena) return arena.error();
  if (device.torch_device().is_cuda() && !arena->pinned()) return std::vector<WaitingStep>{};
  const at::Tensor buffer = device.allocate_buffer(kWaitBytes, executor::kOffPlanTag);
  const auto run = [&](WaitingDriver& driver, std::int64_t index) {
    if (step.prepare) step.prepare(index);
    device.synchronize();
    step.step();
    device.synchronize();
    return driver.take();
  };
  std::vector<WaitingStep> steps;
  try {
    WaitingDriver driver(device, arena->data(), static_cast<std::byte*>(buffer.mutable_data_ptr()));
    static_cast<void>(run(driver, first_index));
    Nanoseconds spent = 0;
    for (std::int64_t i = 0; budget.wants_more(i, spent); ++i) {
      const auto begin = Clock::now();
      steps.push_back(run(driver, first_index + 1 + i));
      spent += time_since(begin);
    }
  } catch (...) {
    device.synchronize();  // no copy into the arena outlives it
    throw;
  }
  return steps;
}

Ppm woken_launch_speed(const Trace& trace, const std::vector<WaitingStep>& steps) {
  const auto& packs = trace.saved.event;
  const std::size_t count = packs.size();
  const simulator::StepIndex index(trace);
  const auto is_other = [&](const WaitingStep& step) {
    return step.waits != static_cast<std::int64_t>(count) || step.worked_ns.size() + 1 != count;
  };
  if (!index.has_launch() || count < 2 || steps.empty() ||
      std::any_of(steps.begin(), steps.end(), is_other)) {
    return kPpm;
  }
  const auto is_apart = [&](std::size_t event) {
    return index.syncs_at(event) || trace.events.kind[event] == EventKind::backward_begin;
  };
  Wide ahead = 0;
  std::vector<Wide> woken(steps.size(), 0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    Wide launches = trace.calibration.hook_ns;
    bool counts = true;
    for (std::size_t e = packs[i].index() + 1; e <= packs[i + 1].index() && counts; ++e) {
      launches += index.launch_ns()[e];
      counts = !is_apart(e);
    }
    if (!counts) continue;
    ahead += launches;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      woken[step] += steps[step].worked_ns[i];
    }
  }
  std::sort(woken.begin(), woken.end());
  const Wide quartile = woken[woken.size() / 4];
  if (quartile <= 0) return kPpm;
  return static_cast<Ppm>(
      std::clamp<Wide>(ahead * kPpm / quartile, simulator::LaunchPace::kSlowest, kPpm));
}

Status calibrate_woken_launch(executor::Device& device, const StepFunctions& step,
                              std::int64_t first_index, Trace& trace) {
  if (!device.torch_device().is_cuda() || trace.overhead.clean.step_ns == 0) return Unit{};
  const auto steps =
      measure_waiting_steps(device, step, first_index, StepBudget::up_to(12, 1, 4'000'000'000));
  if (steps) trace.calibration.woken_launch = woken_launch_speed(trace, *steps);
  return Unit{};
}

}  // namespace stowage::profiler
