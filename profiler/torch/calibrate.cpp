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
#include "profiler/torch/copy_runs.h"
#include "profiler/torch/issue_costs.h"
#include "profiler/torch/link_rounds.h"
#include "profiler/torch/measured_rest_gain.h"
#include "profiler/torch/step_budget.h"
#include "profiler/torch/stopwatch.h"
#include "profiler/torch/stream_gaps.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;

constexpr int kMostPairs = 1024;  // beside a step, which they are to cover as far as they can
constexpr Bytes kGib = Bytes{1} << 30;

using Clock = std::chrono::steady_clock;

Nanoseconds elapsed_since(Clock::time_point begin) {
  return std::max<Nanoseconds>(1, time_since(begin));
}

Ppm ratio(Nanoseconds alone, Nanoseconds together) {
  return std::clamp<Ppm>(alone * kPpm / std::max<Nanoseconds>(1, together), kPpm / 100, kPpm);
}

// Speed of compute while copies run. Copies are queued first: a copy waits for the compute that was
// issued before it.
class Interference {
 public:
  Interference(executor::Device& device, const CopyEnds& out, const CopyEnds& in,
               const CalibrationOptions& options, const at::Tensor& matrix)
      : device_(device), out_(out), in_(in), options_(options) {
    const bool has_step = options.step && !device.torch_device().is_cpu();
    compute_ = has_step ? options.step : [matrix] {
      for (int i = 0; i < 4; ++i) static_cast<void>(at::mm(matrix, matrix));
    };
    // A repetition is two steps; the step has been run before.
    if (has_step) prepare_ = options.prepare;
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
      if (prepare_) prepare_();
      alone.push_back(compute());
      // Copies for as long as compute takes, both ways; for part of it when that is very long.
      // Fewer than fit: the step's own wait for the device must not wait for copies.
      const auto count = std::clamp<Nanoseconds>(alone.back() * 4 / 5 / pair, 1, kMostPairs);
      if (prepare_) prepare_();
      device_.synchronize();
      queue(static_cast<int>(count));
      const Nanoseconds together = compute();
      device_.synchronize();
      spent += alone.back() + together;
      const Nanoseconds covered = std::min(alone.back(), count * pair);
      beside.push_back(ratio(covered, covered + std::max<Nanoseconds>(0, together - alone.back())));
    }
    return median(beside);
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
      start_copy(device_, CopyLane::d2h, out_, options_.largest);
      start_copy(device_, CopyLane::h2d, in_, options_.largest);
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
  const CopyEnds out_;
  const CopyEnds in_;
  const CalibrationOptions& options_;
  std::function<void()> compute_;
  std::function<void()> prepare_;
  StepBudget budget_;
};

std::int64_t pageable_rate(executor::Device& device, const CopyEnds& ends, Bytes bytes) {
  const auto block = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
  const CopyEnds pageable{ends.device, block.get()};
  static_cast<void>(time_of_copies(device, CopyLane::h2d, pageable, bytes, 1));  // warm
  return copy_rate(bytes, time_of_copies(device, CopyLane::h2d, pageable, bytes, 1));
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

Result<Calibration> calibrate(executor::Device& device, const CalibrationOptions& options) {
  const auto begin = Clock::now();
  Result<executor::HostArena> arena = device.host_arena(2 * options.largest);
  if (!arena) return arena.error();
  const Nanoseconds pinning = elapsed_since(begin);
  const at::Tensor buffer = device.allocate_buffer(2 * options.largest, executor::kOffPlanTag);
  auto* const memory = static_cast<std::byte*>(buffer.mutable_data_ptr());
  const FinishedAtTheEnd finished{device};
  const CopyEnds out{memory, arena->data()};
  const CopyEnds in{memory + options.largest, arena->data() + options.largest};

  const bool cpu = device.torch_device().is_cpu();
  const std::int64_t edge = cpu ? 512 : 8192;
  const at::Tensor matrix = at::ones({edge, edge}, at::TensorOptions(device.torch_device()));
  const std::function<void()> product = [matrix] { static_cast<void>(at::mm(matrix, matrix)); };
  LinkRounds link(device, out, in, options.largest, cpu ? std::function<void()>() : product);
  link.run((options.repetitions + 1) / 2);

  Calibration result;
  result.method =
      "fastest quartile of queued copies between device memory and the host arena, in rounds";
  result.samples = options.repetitions;
  link.write(result);  // for what is measured behind it
  Interference interference(device, out, in, options, matrix);
  result.compute_interference = interference.of_compute();
  if (!cpu) {
    result.pageable_bytes_per_second = pageable_rate(device, out, options.largest);
    if (arena->pinned()) {
      result.pin_ns_per_gib =
          static_cast<Nanoseconds>(Wide{pinning} * kGib / (2 * options.largest));
    }
    if (options.step) {
      measure_rest_gain(device, options.prepare, options.step, in.device, in.host, options.largest,
                        result);
    }
    measure_issue_costs(device, arena->data(), options.largest, result);
    measure_stream_gaps(device, arena->data(), result);
  }
  Status updates = measure_host_updates(device, options.updates, memory, arena->data(),
                                        2 * options.largest, options.repetitions, result);
  if (!updates) return std::move(updates).error();
  link.run(options.repetitions / 2);
  link.write(result);
  device.synchronize();
  return result;
}

}  // namespace stowage::profiler
