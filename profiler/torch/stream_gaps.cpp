#include "profiler/torch/stream_gaps.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "profiler/torch/stopwatch.h"
#include "simulator/machine/link_model.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;
using executor::CopyTicket;
using Clock = std::chrono::steady_clock;

constexpr int kCount = 100;
constexpr int kRounds = 7;
constexpr Nanoseconds kAhead = 20'000'000;  // of products, several times what issuing takes
constexpr std::int64_t kEdge = 4096;        // 64 MiB

class Queues {
 public:
  static constexpr Bytes kBytes = Bytes{4} << 10;

  Queues(executor::Device& device, std::byte* host)
      : device_(device),
        host_(host),
        buffer_(device.allocate_buffer(kBytes, executor::kOffPlanTag)),
        small_(at::ones({256}, at::TensorOptions(device.torch_device()))),
        product_(at::ones({kEdge, kEdge}, at::TensorOptions(device.torch_device()))) {
    products(1);  // warm
    constexpr int kSome = 4;
    const Nanoseconds some = products(kSome);
    ahead_ = static_cast<int>(kAhead * kSome / std::max<Nanoseconds>(some, kAhead / 1000)) + 1;
  }

  void kernel() { small_.mul_(1); }
  CopyTicket copy() {
    return device_.copy_async(CopyLane::h2d, buffer_.mutable_data_ptr(), host_, kBytes);
  }
  void copy_on_compute() { device_.copy_on_compute(buffer_.mutable_data_ptr(), host_, kBytes); }

  // What one call of `issue` adds to a queue behind work that takes longer than the calls.
  template <class F>
  Nanoseconds one(const F& issue) {
    std::vector<Nanoseconds> times;
    for (int round = 0; round < kRounds; ++round) {
      const Nanoseconds few = run(issue, kCount);
      times.push_back((run(issue, 2 * kCount) - few) / kCount);
    }
    return median(times);
  }

 private:
  template <class F>
  Nanoseconds run(const F& issue, int count) {
    device_.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < ahead_; ++i) static_cast<void>(at::mm(product_, product_));
    for (int i = 0; i < count; ++i) issue();
    device_.synchronize_compute();  // a lane may be further behind
    return time_since(begin);
  }
  Nanoseconds products(int count) {
    device_.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) static_cast<void>(at::mm(product_, product_));
    device_.synchronize();
    return time_since(begin);
  }

  executor::Device& device_;
  std::byte* host_;
  at::Tensor buffer_;
  at::Tensor small_;
  at::Tensor product_;
  int ahead_ = 1;  // products that a queue begins with
};

}  // namespace

void measure_stream_gaps(executor::Device& device, std::byte* host, Calibration& result) {
  if (device.torch_device().is_cpu()) return;
  Queues queues(device, host);
  const auto kernel = [&] { queues.kernel(); };
  static_cast<void>(queues.one(kernel));  // warm
  const Nanoseconds of_kernel = queues.one(kernel);
  const Nanoseconds with_start = queues.one([&] {
    queues.kernel();
    static_cast<void>(queues.copy());
  });
  const Nanoseconds in_turn = queues.one([&] {
    queues.kernel();
    device.wait(queues.copy());
  });
  const Nanoseconds on_compute = queues.one([&] {
    queues.kernel();
    queues.copy_on_compute();
  });
  device.synchronize();
  const Nanoseconds copy = simulator::transfer_ns(result.h2d, Queues::kBytes);
  const auto positive = [](Nanoseconds gap) { return std::max<Nanoseconds>(0, gap); };
  result.start_gap_ns = positive(with_start - of_kernel);
  result.handover_ns = positive(in_turn - of_kernel - result.start_gap_ns - copy);
  result.compute_copy_gap_ns = positive(on_compute - of_kernel - copy);
}

}  // namespace stowage::profiler
