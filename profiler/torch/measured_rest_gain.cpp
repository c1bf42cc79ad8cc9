#include "profiler/torch/measured_rest_gain.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "executor/step_driver.h"
#include "profiler/torch/step_budget.h"
#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;
using Clock = std::chrono::steady_clock;

constexpr Ppm kShort = 150'000;
constexpr Ppm kLong = 500'000;
constexpr Ppm kNoise = 10'000;
constexpr Nanoseconds kSettled = 500'000'000;
constexpr Nanoseconds kMeasured = 1'000'000'000;
constexpr std::int64_t kMostSteps = 8;

// Makes compute wait for copies at every layer event.
class RestingDriver final : public executor::StepDriver {
 public:
  RestingDriver(executor::Device& device, std::byte* memory, const std::byte* host, Bytes bytes)
      : device_(device), memory_(memory), host_(host), bytes_(bytes) {}

  // Copied at each event; 0 = no rests.
  void set_bytes_per_event(Bytes bytes) { per_event_ = bytes; }
  [[nodiscard]] std::int64_t take_events() { return std::exchange(events_, 0); }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
  void layer_event(executor::LayerEvent /*event*/, std::string_view /*path*/) override {
    ++events_;
    executor::CopyTicket last;
    for (Bytes left = per_event_; left > 0; left -= bytes_) {
      last = device_.copy_async(CopyLane::h2d, memory_, host_, std::min(left, bytes_));
    }
    if (last.number > 0) device_.wait(last);
  }
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(executor::UpdateEvent /*event*/, const at::Tensor& /*parameter*/) override {
  }

 private:
  executor::Device& device_;
  std::byte* memory_;
  const std::byte* host_;
  Bytes bytes_;
  Bytes per_event_ = 0;
  std::int64_t events_ = 0;
};

class Measurement {
 public:
  Measurement(executor::Device& device, const std::function<void()>& prepare,
              const std::function<void()>& step)
      : device_(device), prepare_(prepare), step_(step) {
    device_.time_stalls(true);
  }
  ~Measurement() { device_.time_stalls(false); }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // The mean of some steps, behind others that let the GPU settle.
  RestedStep run() {
    Nanoseconds settled = 0;
    do {
      const RestedStep step = one();
      settled += step.compute + step.rest;
    } while (settled < kSettled);
    RestedStep sum;
    std::int64_t done = 0;
    const auto budget = StepBudget::up_to(kMostSteps, 1, kMeasured);
    for (; budget.wants_more(done, sum.compute + sum.rest); ++done) {
      const RestedStep step = one();
      sum.compute += step.compute;
      sum.rest += step.rest;
    }
    return {sum.compute / done, sum.rest / done};
  }

 private:
  RestedStep one() {
    if (prepare_) prepare_();
    device_.synchronize();
    device_.reset_peak();
    const auto begin = Clock::now();
    step_();
    device_.synchronize();
    const Nanoseconds wall = time_since(begin);
    const Nanoseconds rest = device_.stall_ns();
    return {std::max<Nanoseconds>(1, wall - rest), rest};
  }

  executor::Device& device_;
  const std::function<void()>& prepare_;
  const std::function<void()>& step_;
};

}  // namespace

void set_rest_gain(const RestedStep& without, const RestedStep& shortly, const RestedStep& longer,
                   Calibration& calibration) {
  calibration.least_compute = kPpm;
  calibration.rest_gain = 0;
  const Nanoseconds least = std::min(shortly.compute, longer.compute);
  const Ppm part = least * kPpm / std::max<Nanoseconds>(1, without.compute);
  if (part > kPpm - kNoise || shortly.rest <= 0 || longer.rest <= 0) return;
  // Of a unit of rest, in the short rests, where as a rule not all is gained yet; in the long ones
  // where the short ones gained nothing that shows.
  const auto gain = [&](const RestedStep& step) {
    return (without.compute - step.compute) * kPpm / step.rest;
  };
  calibration.least_compute = part;
  calibration.rest_gain = std::clamp<Ppm>(std::max(gain(shortly), gain(longer)), 0, kPpm / 2);
}

void measure_rest_gain(executor::Device& device, const std::function<void()>& prepare,
                       const std::function<void()>& step, std::byte* memory, const std::byte* host,
                       Bytes bytes, Calibration& calibration) {
  RestingDriver driver(device, memory, host, bytes);
  const executor::InstalledDriver installed(driver);
  if (prepare) prepare();
  step();
  const std::int64_t events = driver.take_events();
  if (events == 0 || calibration.h2d.bytes_per_second.empty()) return;
  Measurement measurement(device, prepare, step);
  const RestedStep without = measurement.run();
  const auto rested = [&](Ppm part) {
    const Wide time = Wide{without.compute} * part / kPpm;
    const Wide all = time * calibration.h2d.bytes_per_second.back() / 1'000'000'000;
    driver.set_bytes_per_event(std::max<Bytes>(1, static_cast<Bytes>(all / events)));
    return measurement.run();
  };
  const RestedStep shortly = rested(kShort);
  set_rest_gain(without, shortly, rested(kLong), calibration);
}

}  // namespace stowage::profiler
