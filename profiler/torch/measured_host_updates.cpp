#include "profiler/torch/measured_host_updates.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/host_work.h"
#include "executor/host_update_thread.h"
#include "executor/optimizer.h"
#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {
namespace {

using Clock = std::chrono::steady_clock;
using executor::CopyLane;
using executor::CopyTicket;

constexpr std::int64_t kFewElements = 256;  // elements: what any update takes
constexpr std::int64_t kManyElements = std::int64_t{4} << 20;
constexpr std::int64_t kManyOnCpu = std::int64_t{1} << 20;
constexpr int kMostSamples = 7;
// In turn, so that none is in the caches any more when it comes again, as in a step: 768 MiB of
// fp32 with Adam's moments, where servers have caches of 320 MB; 64 MiB on the CPU (recording.cpp).
constexpr std::size_t kInTurn = 12;
constexpr std::size_t kInTurnOnCpu = 4;
constexpr Bytes kGibibyte = Bytes{1} << 30;
constexpr Nanoseconds kLongUpdate = 100'000'000;  // of one update, for as many repetitions

// Parameters of one size, with their optimizer, all of it on the host.
class UpdatedInTurn {
 public:
  UpdatedInTurn(const HostUpdateKind& kind, std::int64_t elements, std::size_t count) {
    const executor::HostWorkGuard host_work;
    const at::TensorOptions options = at::TensorOptions(kind.dtype);
    std::vector<executor::NamedTensor> parameters;
    for (std::size_t i = 0; i < count; ++i) {
      parameters.push_back({"p" + std::to_string(i), at::zeros({elements}, options)});
    }
    executor::OptimizerSpec spec = kind.optimizer;
    spec.in_backward = false;
    optimizer_ = executor::make_optimizer(spec, parameters);
    optimizer_->make_state(parameters);
    const std::vector<executor::NamedTensor> state = optimizer_->state();
    for (std::size_t i = 0; i < count; ++i) {
      executor::HostTensors& tensors = all_.emplace_back();
      tensors.weights = at::full({elements}, 0.5, options);
      tensors.gradient = at::full({elements}, 1e-3, options);
      for (const executor::NamedTensor& each : state) {
        if (executor::owner_of_state(each.name, parameters)->name != parameters[i].name) continue;
        tensors.state.push_back({each.name, at::zeros({elements}, each.tensor.scalar_type())});
      }
    }
  }

  // Of one update.
  [[nodiscard]] Bytes bytes() const {
    const executor::HostTensors& one = all_.front();
    auto bytes = static_cast<Bytes>(one.weights.nbytes() + one.gradient.nbytes());
    for (const executor::NamedTensor& each : one.state) {
      bytes += static_cast<Bytes>(each.tensor.nbytes());
    }
    return bytes;
  }
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  void update() {
    const std::size_t i = next_++ % all_.size();
    optimizer_->step_on_host(i, all_[i]);
  }

 private:
  std::unique_ptr<executor::Optimizer> optimizer_;
  std::vector<executor::HostTensors> all_;
  std::size_t next_ = 0;
};

// The update's own time, as it takes it on its thread.
Nanoseconds time_of_update(executor::HostUpdateThread& thread, UpdatedInTurn& updated) {
  Nanoseconds time = 0;
  thread.wait(thread.submit({}, [&] {
    const Clock::time_point begin = Clock::now();
    updated.update();
    time = time_since(begin);
  }));
  return time;
}

Nanoseconds update_alone(executor::HostUpdateThread& thread, UpdatedInTurn& updated, int samples) {
  std::vector<Nanoseconds> times;
  for (std::size_t i = 0; i < updated.count(); ++i) {  // pages and code
    static_cast<void>(time_of_update(thread, updated));
  }
  for (int i = 0; i < samples; ++i) {
    times.push_back(time_of_update(thread, updated));
    if (times.back() > kLongUpdate && i >= 1) break;
  }
  return median(std::move(times));
}

// Speed of an update while both lanes copy, of that alone. Copies begin ahead of it and go on
// behind it.
Ppm beside_copies(executor::Device& device, executor::HostUpdateThread& thread,
                  UpdatedInTurn& updated, std::byte* device_memory, std::byte* host, Bytes bytes,
                  int samples, Nanoseconds alone_ns) {
  const Bytes half = bytes / 2;
  const auto pair = [&] {
    static_cast<void>(device.copy_async(CopyLane::d2h, host, device_memory, half));
    return device.copy_async(CopyLane::h2d, device_memory + half, host + half, half);
  };
  device.synchronize();
  Clock::time_point begin = Clock::now();
  static_cast<void>(pair());
  device.synchronize();
  const Nanoseconds one = std::max<Nanoseconds>(time_since(begin), 1);
  const Nanoseconds pairs = std::clamp<Nanoseconds>(3 * alone_ns / one + 2, 2, 256);
  std::vector<Nanoseconds> times;
  for (int i = 0; i < samples; ++i) {
    for (Nanoseconds p = 0; p < pairs; ++p) static_cast<void>(pair());
    times.push_back(time_of_update(thread, updated));
    device.synchronize();
    if (times.back() > kLongUpdate && i >= 1) break;
  }
  const Nanoseconds together = std::max(median(std::move(times)), Nanoseconds{1});
  return std::clamp<Ppm>(alone_ns * kPpm / together, kPpm / 100, kPpm);
}

}  // namespace

void measure_host_updates(executor::Device& device, const HostUpdateKind& kind,
                          std::byte* device_memory, std::byte* host, Bytes bytes, int samples,
                          Calibration& calibration) {
  if (kind.optimizer.kind == executor::OptimizerKind::none) return;
  samples = std::min(samples, kMostSamples);
  executor::HostUpdateThread thread(device);
  UpdatedInTurn few(kind, kFewElements, 1);
  const bool is_cpu = device.torch_device().is_cpu();
  UpdatedInTurn many(kind, is_cpu ? kManyOnCpu : kManyElements, is_cpu ? kInTurnOnCpu : kInTurn);
  const Nanoseconds few_ns = update_alone(thread, few, samples);
  const Nanoseconds many_ns = update_alone(thread, many, samples);
  const Nanoseconds more = std::max<Nanoseconds>(many_ns - few_ns, 1);
  calibration.host_update_ns = few_ns;
  calibration.host_update_ns_per_gib = std::max<Nanoseconds>(
      1, static_cast<Nanoseconds>(Wide{more} * kGibibyte / (many.bytes() - few.bytes())));
  calibration.host_update_interference =
      beside_copies(device, thread, many, device_memory, host, bytes, samples, many_ns);
}

}  // namespace stowage::profiler
