#include "profiler/torch/measured_host_updates.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/host_arena.h"
#include "executor/device/host_work.h"
#include "executor/host_update_thread.h"
#include "executor/optimizer.h"
#include "profiler/torch/stopwatch.h"
#include "simulator/schedule/host_slots.h"

namespace stowage::profiler {
namespace {

using Clock = std::chrono::steady_clock;
using executor::CopyLane;
using executor::CopyTicket;

constexpr std::int64_t kFewElements = 256;  // what any update takes
// Of the run's own size within these: threads take a while to begin, which a byte of a larger
// parameter has less of.
constexpr std::int64_t kLeastElements = std::int64_t{1} << 20;
constexpr std::int64_t kMostElements = std::int64_t{64} << 20;
constexpr std::int64_t kElementsOnCpu = std::int64_t{1} << 20;
constexpr int kMostSamples = 7;
// As many bytes in turn that none is in the caches any more when it comes again, as in a step:
// servers have caches of 320 MB; less on the CPU (recording.cpp).
constexpr Bytes kInTurn = Bytes{768} << 20;
constexpr Bytes kInTurnOnCpu = Bytes{64} << 20;
constexpr Bytes kGibibyte = Bytes{1} << 30;
constexpr Nanoseconds kLongUpdate = 100'000'000;  // of one update, for as many repetitions

// Tensors of one size, one behind the other in memory of a plan's kind: threads that go over
// another one's pages are slower.
class Homes {
 public:
  explicit Homes(executor::HostArena arena) : arena_(std::move(arena)) {}
  static Bytes bytes_of(std::int64_t elements, at::ScalarType dtype) {
    return simulator::slot_bytes(elements * static_cast<Bytes>(c10::elementSize(dtype)));
  }
  at::Tensor next(std::int64_t elements, at::ScalarType dtype) {
    STOWAGE_ASSERT(next_ + bytes_of(elements, dtype) <= arena_.bytes());
    at::Tensor tensor = at::from_blob(arena_.data() + next_, {elements}, at::TensorOptions(dtype));
    next_ += bytes_of(elements, dtype);
    return tensor;
  }

 private:
  executor::HostArena arena_;
  Bytes next_ = 0;
};

// Parameters of one size, with their optimizer, all of it on the host.
class UpdatedInTurn {
 public:
  // As many as have `in_turn` bytes, at least one. Errors: host_arena()'s.
  static Result<std::unique_ptr<UpdatedInTurn>> make(executor::Device& device,
                                                     const HostUpdateKind& kind,
                                                     std::int64_t elements, Bytes in_turn) {
    const executor::HostWorkGuard host_work;
    std::vector<at::ScalarType> dtypes = {kind.dtype, kind.dtype};  // weights, gradient, state
    const std::vector<executor::NamedTensor> one = {
        {"p0", at::empty({elements}, at::TensorOptions(kind.dtype))}};
    const auto optimizer = optimizer_of(kind, one);
    for (const executor::NamedTensor& each : optimizer->state()) {
      dtypes.push_back(each.tensor.scalar_type());
    }
    Bytes bytes = 0;
    for (const at::ScalarType dtype : dtypes) bytes += Homes::bytes_of(elements, dtype);
    const Bytes count = (in_turn + bytes - 1) / bytes;
    Result<executor::HostArena> arena = device.host_arena(count * bytes);
    if (!arena) return std::move(arena).error();
    return std::make_unique<UpdatedInTurn>(kind, elements, static_cast<std::size_t>(count),
                                           std::move(arena).value());
  }

  UpdatedInTurn(const HostUpdateKind& kind, std::int64_t elements, std::size_t count,
                executor::HostArena arena)
      : homes_(std::move(arena)) {
    const executor::HostWorkGuard host_work;
    std::vector<executor::NamedTensor> parameters;
    for (std::size_t i = 0; i < count; ++i) {
      parameters.push_back(
          {"p" + std::to_string(i), at::empty({elements}, at::TensorOptions(kind.dtype))});
    }
    optimizer_ = optimizer_of(kind, parameters);
    const std::vector<executor::NamedTensor> state = optimizer_->state();
    for (std::size_t i = 0; i < count; ++i) {
      executor::HostTensors& tensors = all_.emplace_back();
      tensors.weights = homes_.next(elements, kind.dtype).fill_(0.5);
      tensors.gradient = homes_.next(elements, kind.dtype).fill_(1e-3);
      for (const executor::NamedTensor& each : state) {
        if (executor::owner_of_state(each.name, parameters)->name != parameters[i].name) continue;
        tensors.state.push_back({each.name, homes_.next(elements, each.tensor.scalar_type())});
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
  static std::unique_ptr<executor::Optimizer> optimizer_of(
      const HostUpdateKind& kind, const std::vector<executor::NamedTensor>& parameters) {
    executor::OptimizerSpec spec = kind.optimizer;
    spec.in_backward = false;
    std::unique_ptr<executor::Optimizer> optimizer = executor::make_optimizer(spec, parameters);
    optimizer->make_state(parameters);
    return optimizer;
  }

  Homes homes_;
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

HostUpdateKind host_update_kind(const executor::OptimizerSpec& optimizer,
                                const std::vector<executor::NamedTensor>& parameters) {
  HostUpdateKind kind{optimizer, c10::ScalarType::Float, 0};
  std::map<c10::ScalarType, std::size_t> bytes;
  std::vector<std::int64_t> elements;
  for (const executor::NamedTensor& each : parameters) {
    bytes[each.tensor.scalar_type()] += each.tensor.nbytes();
    elements.push_back(each.tensor.numel());
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != bytes.end()) kind.dtype = most->first;
  std::sort(elements.begin(), elements.end());
  std::int64_t left = std::accumulate(elements.begin(), elements.end(), std::int64_t{0}) / 2;
  for (const std::int64_t each : elements) {
    kind.elements = each;
    if ((left -= each) < 0) break;
  }
  return kind;
}

Status measure_host_updates(executor::Device& device, const HostUpdateKind& kind,
                            std::byte* device_memory, std::byte* host, Bytes bytes, int samples,
                            Calibration& calibration) {
  if (kind.optimizer.kind == executor::OptimizerKind::none) return Unit{};
  samples = std::min(samples, kMostSamples);
  const bool is_cpu = device.torch_device().is_cpu();
  const std::int64_t elements =
      is_cpu ? kElementsOnCpu : std::clamp(kind.elements, kLeastElements, kMostElements);
  auto few = UpdatedInTurn::make(device, kind, kFewElements, 1);
  if (!few) return std::move(few).error();
  auto many = UpdatedInTurn::make(device, kind, elements, is_cpu ? kInTurnOnCpu : kInTurn);
  if (!many) return std::move(many).error();
  executor::HostUpdateThread thread(device);
  const Nanoseconds few_ns = update_alone(thread, **few, samples);
  const Nanoseconds many_ns = update_alone(thread, **many, samples);
  const Nanoseconds more = std::max<Nanoseconds>(many_ns - few_ns, 1);
  calibration.host_update_ns = few_ns;
  calibration.host_update_ns_per_gib = std::max<Nanoseconds>(
      1, static_cast<Nanoseconds>(Wide{more} * kGibibyte / ((*many)->bytes() - (*few)->bytes())));
  calibration.host_update_interference =
      beside_copies(device, thread, **many, device_memory, host, bytes, samples, many_ns);
  return Unit{};
}

}  // namespace stowage::profiler
