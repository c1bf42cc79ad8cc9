#include "profiler/torch/calibrate.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "executor/device/host_arena.h"
#include "profiler/torch/issue_costs.h"
#include "profiler/torch/measured_rest_gain.h"
#include "profiler/torch/step_budget.h"
#include "profiler/torch/stopwatch.h"
#include "profiler/torch/stream_gaps.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;
using executor::CopyTicket;

constexpr Bytes kSmallest = Bytes{4} << 10;
constexpr Bytes kBatchBytes = Bytes{16} << 20;  // copied in one go, for small transfers
constexpr int kMostCopies = 64;
constexpr int kMostPairs = 1024;  // beside a step, which they are to cover as far as they can
constexpr std::int64_t kBillion = 1'000'000'000;
constexpr Bytes kGib = Bytes{1} << 30;

using Clock = std::chrono::steady_clock;

Nanoseconds elapsed_since(Clock::time_point begin) {
  return std::max<Nanoseconds>(1, time_since(begin));
}

Nanoseconds quantile(std::vector<Nanoseconds> times, std::size_t percent) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) * percent / 100];
}

struct Ends {
  std::byte* device = nullptr;
  std::byte* host = nullptr;
};

CopyTicket start(executor::Device& device, CopyLane lane, const Ends& ends, Bytes bytes) {
  std::byte* const to = lane == CopyLane::d2h ? ends.host : ends.device;
  const std::byte* const from = lane == CopyLane::d2h ? ends.device : ends.host;
  return device.copy_async(lane, to, from, bytes);
}

// `count` copies one after the other; from an idle device until the CPU sees the last one done.
Nanoseconds run_copies(executor::Device& device, CopyLane lane, const Ends& ends, Bytes bytes,
                       int count) {
  device.synchronize();
  const auto begin = Clock::now();
  CopyTicket last;
  for (int i = 0; i < count; ++i) last = start(device, lane, ends, bytes);
  device.wait_blocking(last);
  return elapsed_since(begin);
}

// One copy in a queue of its like: what starting and ending the measurement takes cancels out.
Nanoseconds one_copy(executor::Device& device, CopyLane lane, const Ends& ends, Bytes bytes) {
  const int count =
      static_cast<int>(std::clamp<Bytes>(kBatchBytes / bytes, 1, Bytes{kMostCopies / 2}));
  const Nanoseconds few = run_copies(device, lane, ends, bytes, count);
  const Nanoseconds many = run_copies(device, lane, ends, bytes, 2 * count);
  return time_of_one_copy(few, many, count);
}

std::int64_t rate(Bytes bytes, Nanoseconds time) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(Wide{bytes} * kBillion / time));
}

LinkCurve curve(executor::Device& device, CopyLane lane, const Ends& ends,
                const CalibrationOptions& options) {
  LinkCurve result;
  for (Bytes bytes = kSmallest; bytes <= options.largest; bytes *= 4) {
    std::vector<Nanoseconds> times;
    run_copies(device, lane, ends, bytes, 1);  // warm
    for (int i = 0; i < options.repetitions; ++i) {
      times.push_back(one_copy(device, lane, ends, bytes));
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
  constexpr int kCopies = 4;
  std::vector<Nanoseconds> alone;
  std::vector<Nanoseconds> together;
  for (int i = 0; i < options.repetitions; ++i) {
    alone.push_back(std::max(run_copies(device, CopyLane::d2h, out, options.largest, kCopies),
                             run_copies(device, CopyLane::h2d, in, options.largest, kCopies)));
    device.synchronize();
    const auto begin = Clock::now();
    CopyTicket a;
    CopyTicket b;
    for (int copy = 0; copy < kCopies; ++copy) {
      a = start(device, CopyLane::d2h, out, options.largest);
      b = start(device, CopyLane::h2d, in, options.largest);
    }
    device.wait_blocking(a);
    device.wait_blocking(b);
    together.push_back(elapsed_since(begin));
  }
  return ratio(quantile(alone, 50), quantile(together, 50));
}

// Speed of compute, and of copies, while the other one runs. Copies are queued first: a copy waits
// for the compute that was issued before it.
class Interference {
 public:
  Interference(executor::Device& device, const Ends& out, const Ends& in,
               const CalibrationOptions& options)
      : device_(device), out_(out), in_(in), options_(options) {
    const bool cpu = device.torch_device().is_cpu();
    const std::int64_t edge = cpu ? 512 : 8192;
    product_ = at::ones({edge, edge}, at::TensorOptions(device.torch_device()));
    const bool has_step = options.step && !cpu;
    compute_ = has_step ? options.step : [this] {
      for (int i = 0; i < 4; ++i) static_cast<void>(at::mm(product_, product_));
    };
    // A repetition is two steps; the step has been run before.
    budget_ = has_step ? StepBudget::up_to(std::min(3, options.repetitions), 2, 6'000'000'000)
                       : StepBudget::exactly(options.repetitions);
    if (!has_step) compute();
  }

  [[nodiscard]] Ppm of_compute() {
    std::vector<Nanoseconds> alone;
    std::vector<Nanoseconds> beside;
    const Nanoseconds pair = std::max(copies(1), Nanoseconds{1});
    Nanoseconds spent = 0;
    for (int i = 0; budget_.wants_more(i, spent); ++i) {
      alone.push_back(compute());
      // Copies for as long as compute takes, both ways; for part of it when that is very long.
      // Fewer than fit: the step's own wait for the device must not wait for copies.
      const auto count = std::clamp<Nanoseconds>(alone.back() * 4 / 5 / pair, 1, kMostPairs);
      device_.synchronize();
      queue(static_cast<int>(count));
      const Nanoseconds together = compute();
      device_.synchronize();
      spent += alone.back() + together;
      const Nanoseconds covered = std::min(alone.back(), count * pair);
      beside.push_back(ratio(covered, covered + std::max<Nanoseconds>(0, together - alone.back())));
    }
    return quantile(beside, 50);
  }

  [[nodiscard]] Ppm of_copies() {
    std::vector<Nanoseconds> alone;
    std::vector<Nanoseconds> beside;
    for (int i = 0; i < options_.repetitions; ++i) {
      alone.push_back(run_copies(device_, CopyLane::d2h, out_, options_.largest, 4));
      device_.synchronize();
      const auto begin = Clock::now();
      CopyTicket last;
      for (int copy = 0; copy < 4; ++copy) {
        last = start(device_, CopyLane::d2h, out_, options_.largest);
      }
      static_cast<void>(at::mm(product_, product_));
      device_.wait_blocking(last);
      beside.push_back(elapsed_since(begin));
      device_.synchronize();
    }
    return ratio(quantile(alone, 50), quantile(beside, 50));
  }

 private:
  Nanoseconds compute() {
    const auto begin = Clock::now();
    compute_();
    device_.synchronize_compute();
    return elapsed_since(begin);
  }

  void queue(int pairs) {
    for (int i = 0; i < pairs; ++i) {
      start(device_, CopyLane::d2h, out_, options_.largest);
      start(device_, CopyLane::h2d, in_, options_.largest);
    }
  }

  Nanoseconds copies(int pairs) {
    device_.synchronize();
    const auto begin = Clock::now();
    queue(pairs);
    device_.synchronize();
    return elapsed_since(begin);
  }

  executor::Device& device_;
  const Ends out_;
  const Ends in_;
  const CalibrationOptions& options_;
  at::Tensor product_;
  std::function<void()> compute_;
  StepBudget budget_;
};

std::int64_t pageable_rate(executor::Device& device, const Ends& ends, Bytes bytes) {
  const auto block = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
  const Ends pageable{ends.device, block.get()};
  run_copies(device, CopyLane::h2d, pageable, bytes, 1);  // warm
  return rate(bytes, run_copies(device, CopyLane::h2d, pageable, bytes, 1));
}

// However calibrate() ends, no copy is left that uses its buffers.
struct FinishedAtTheEnd {
  executor::Device& device;
  ~FinishedAtTheEnd() {
    try {
      device.synchronize();
    } catch (const std::exception&) {
      // A device that failed for good copies nothing any more.
    }
  }
};

}  // namespace

Nanoseconds time_of_one_copy(Nanoseconds of_count, Nanoseconds of_twice, int count) {
  return std::max<Nanoseconds>({1, (of_twice - of_count) / count, of_twice / (4 * count)});
}

Result<Calibration> calibrate(executor::Device& device, const CalibrationOptions& options) {
  const auto begin = Clock::now();
  Result<executor::HostArena> arena = device.host_arena(2 * options.largest);
  if (!arena) return arena.error();
  const Nanoseconds pinning = elapsed_since(begin);
  const at::Tensor buffer = device.allocate_buffer(2 * options.largest, executor::kOffPlanTag);
  auto* const memory = static_cast<std::byte*>(buffer.mutable_data_ptr());
  const FinishedAtTheEnd finished{device};
  const Ends out{memory, arena->data()};
  const Ends in{memory + options.largest, arena->data() + options.largest};

  Calibration result;
  result.method = "median of queued copies between device memory and the host arena";
  result.samples = options.repetitions;
  result.d2h = curve(device, CopyLane::d2h, out, options);
  result.h2d = curve(device, CopyLane::h2d, in, options);
  result.duplex = duplex(device, out, in, options);
  Interference interference(device, out, in, options);
  result.compute_interference = interference.of_compute();
  if (!device.torch_device().is_cpu()) {
    result.copy_interference = interference.of_copies();
    result.pageable_bytes_per_second = pageable_rate(device, out, options.largest);
    if (arena->pinned()) {
      result.pin_ns_per_gib =
          static_cast<Nanoseconds>(Wide{pinning} * kGib / (2 * options.largest));
    }
    if (options.step) {
      measure_rest_gain(device, options.step, in.device, in.host, options.largest, result);
    }
    measure_issue_costs(device, arena->data(), options.largest, result);
    measure_stream_gaps(device, arena->data(), result);
  }
  measure_host_updates(device, options.updates, memory, arena->data(), 2 * options.largest, result);
  device.synchronize();
  return result;
}

}  // namespace stowage::profiler
