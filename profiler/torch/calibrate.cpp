#include "profiler/torch/calibrate.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "executor/device/host_arena.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;

constexpr Bytes kSmallest = Bytes{4} << 10;
constexpr std::int64_t kBillion = 1'000'000'000;

Nanoseconds elapsed(std::chrono::steady_clock::time_point begin) {
  return std::max<Nanoseconds>(1, std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      std::chrono::steady_clock::now() - begin)
                                      .count());
}

Nanoseconds quantile(std::vector<Nanoseconds> times, std::size_t percent) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) * percent / 100];
}

struct Ends {
  std::byte* device = nullptr;
  std::byte* host = nullptr;
};

Nanoseconds one_way(executor::Device& device, CopyLane lane, const Ends& ends, Bytes bytes) {
  std::byte* const to = lane == CopyLane::d2h ? ends.host : ends.device;
  const std::byte* const from = lane == CopyLane::d2h ? ends.device : ends.host;
  device.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  device.wait_blocking(device.copy_async(lane, to, from, bytes));
  return elapsed(begin);
}

std::int64_t rate(Bytes bytes, Nanoseconds time) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(Wide{bytes} * kBillion / time));
}

LinkCurve curve(executor::Device& device, CopyLane lane, const Ends& ends,
                const CalibrationOptions& options) {
  LinkCurve result;
  for (Bytes bytes = kSmallest; bytes <= options.largest; bytes *= 4) {
    std::vector<Nanoseconds> times;
    one_way(device, lane, ends, bytes);  // warm
    for (int i = 0; i < options.repetitions; ++i) {
      times.push_back(one_way(device, lane, ends, bytes));
    }
    result.bytes.push_back(bytes);
    result.bytes_per_second.push_back(rate(bytes, quantile(times, 50)));
    result.bytes_per_second_p10.push_back(rate(bytes, quantile(times, 90)));
    // What the smallest copy takes is nearly all latency.
    if (bytes == kSmallest) result.latency = quantile(times, 50);
  }
  return result;
}

Ppm ratio(Nanoseconds alone, Nanoseconds together) {
  return std::clamp<Ppm>(alone * kPpm / std::max<Nanoseconds>(1, together), kPpm / 100, kPpm);
}

// Each lane's speed while the other one is busy.
Ppm duplex(executor::Device& device, const Ends& out, const Ends& in,
           const CalibrationOptions& options) {
  std::vector<Nanoseconds> alone;
  std::vector<Nanoseconds> together;
  for (int i = 0; i < options.repetitions; ++i) {
    alone.push_back(std::max(one_way(device, CopyLane::d2h, out, options.largest),
                             one_way(device, CopyLane::h2d, in, options.largest)));
    const auto begin = std::chrono::steady_clock::now();
    const auto a = device.copy_async(CopyLane::d2h, out.host, out.device, options.largest);
    const auto b = device.copy_async(CopyLane::h2d, in.device, in.host, options.largest);
    device.wait_blocking(a);
    device.wait_blocking(b);
    together.push_back(elapsed(begin));
  }
  return ratio(quantile(alone, 50), quantile(together, 50));
}

// Speed of a copy, and of a matrix product, while the other one runs.
void interference(executor::Device& device, const Ends& ends, const CalibrationOptions& options,
                  Calibration& result) {
  const at::Tensor a = at::ones({512, 512}, at::TensorOptions(device.torch_device()));
  const auto compute = [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) static_cast<void>(at::mm(a, a));
    device.synchronize();
    return elapsed(begin);
  };
  compute();
  std::vector<Nanoseconds> compute_alone;
  std::vector<Nanoseconds> compute_beside;
  for (int i = 0; i < options.repetitions; ++i) {
    compute_alone.push_back(compute());
    // Enough copies that one is under way as long as the product runs; only compute is timed.
    for (int copy = 0; copy < 4; ++copy) {
      device.copy_async(CopyLane::d2h, ends.host, ends.device, options.largest);
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < 4; ++j) static_cast<void>(at::mm(a, a));
    compute_beside.push_back(elapsed(begin));
    device.synchronize();
  }
  result.compute_interference = ratio(quantile(compute_alone, 50), quantile(compute_beside, 50));
}

}  // namespace

Result<Calibration> calibrate(executor::Device& device, const CalibrationOptions& options) {
  Result<executor::HostArena> arena = device.host_arena(2 * options.largest);
  if (!arena) return arena.error();
  const at::Tensor buffer = device.allocate_buffer(2 * options.largest, executor::kStepAllocation);
  auto* const memory = static_cast<std::byte*>(buffer.mutable_data_ptr());
  const Ends out{memory, arena->data()};
  const Ends in{memory + options.largest, arena->data() + options.largest};

  Calibration result;
  result.method = "median of timed copies between device memory and the host arena";
  result.samples = options.repetitions;
  result.d2h = curve(device, CopyLane::d2h, out, options);
  result.h2d = curve(device, CopyLane::h2d, in, options);
  result.duplex = duplex(device, out, in, options);
  interference(device, out, options, result);
  device.synchronize();
  return result;
}

}  // namespace stowage::profiler
