// Planned steps on a GPU: streams, threads, budgets, overlap, and nothing taken after the first
// step.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/layer.h"
#include "executor/reserve_segments.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using executor::CopyLane;
using executor::CudaDevice;
using testing::backward;
using testing::hand_device;
using testing::HandStep;
using testing::input;
using testing::offload_made;
using testing::Outcome;
using testing::parameter;
using testing::styles;

double chain(const at::Tensor& x, const std::vector<at::Tensor>& weights) {
  at::Tensor hidden = x * 2;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    hidden =
        layer("layers." + std::to_string(i),
              [&, i](const auto& in) { return at::linear(in[0], weights[i]).tanh(); }, {hidden});
  }
  hidden = hidden.pow(2).sum();
  return backward(hidden);
}

std::vector<at::Tensor> square_weights(int count, std::int64_t side) {
  std::vector<at::Tensor> weights;
  for (int i = 0; i < count; ++i) weights.push_back(parameter({side, side}));
  return weights;
}

c10::cuda::CUDAStream side_stream() {
  return c10::cuda::getStreamFromPool(false, hand_device().torch_device().index());
}

// Trap 13: recorded, run plainly and planned, all on a stream of the caller's own.
TEST(CallersStream, MayBeAnyStream) {
  const auto weights = square_weights(4, 256);
  const at::Tensor x = input({512, 256});
  hand_device().synchronize();
  const c10::cuda::CUDAStreamGuard guard(side_stream());
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  for (int repeat = 0; repeat < 5; ++repeat) {
    testing::change_delays();
    testing::expect_exact_in_every_style(step);
  }
}

// A plan recorded on one stream runs on another one; the arithmetic is the same.
TEST(CallersStream, MayDifferFromTheRecordings) {
  const auto weights = square_weights(4, 128);
  const at::Tensor x = input({256, 128});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  const Outcome reference = step.plain(3);
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto plan = step.plan(step.lower(offload_made(step.trace(), style.decision)).schedule);
    hand_device().synchronize();
    const c10::cuda::CUDAStreamGuard guard(side_stream());
    testing::expect_same(step.planned(*plan, 3), reference);
    hand_device().synchronize();
  }
}

TEST(CallersStream, ThatChangesWithinAStepIsRefused) {
  const at::Tensor p = parameter({64, 64});
  bool change = false;
  HandStep step({p}, {}, [&] {
    at::Tensor y = (p * 2).exp();
    std::optional<c10::cuda::CUDAStreamGuard> guard;
    if (change) guard.emplace(side_stream());
    return backward((y * p).sum());
  });
  const auto plan =
      step.plan(step.lower(offload_made(step.trace(), styles()[1].decision)).schedule);
  const Outcome reference = step.plain(0);
  change = true;
  const std::string text = testing::error_of([&] { step.planned(*plan, 0); });
  EXPECT_NE(text.find("must stay on one CUDA stream"), std::string::npos) << text;
  change = false;
  testing::expect_same(step.planned(*plan, 0), reference);
}

// Trap 14: unpacks come on autograd's thread here, so nothing of the plan may belong to a thread.
struct NotesItsThread : torch::autograd::Function<NotesItsThread> {
  static std::thread::id& noted() {
    static std::thread::id id;
    return id;
  }
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    noted() = std::this_thread::get_id();
    return gradients;
  }
};

TEST(Backward, RunsOnAnotherThreadAndIsExact) {
  const auto weights = square_weights(3, 64);
  const at::Tensor x = input({64, 64});
  HandStep step(weights, {x},
                [&] { return chain(NotesItsThread::apply(x * weights[0].sum()), weights); });
  testing::expect_exact_in_every_style(step);
  EXPECT_NE(NotesItsThread::noted(), std::thread::id());
  EXPECT_NE(NotesItsThread::noted(), std::this_thread::get_id());
}

// A parameter on the CPU beside those on the GPU: its nodes run on the caller's thread, beside
// autograd's thread of the GPU. Such a step is recorded and run right, or refused in words.
TEST(TwoDevices, AreRightOrRefused) {
  const auto weights = square_weights(4, 128);
  const at::Tensor on_cpu =
      at::rand({64, 64}, at::TensorOptions(at::kCPU).dtype(at::kFloat)).requires_grad_();
  std::vector<at::Tensor> parameters = weights;
  parameters.push_back(on_cpu);
  const auto body = [&] {
    at::Tensor host = on_cpu * 2;
    at::Tensor hidden = weights[0] * 2;
    for (const at::Tensor& weight : weights) {
      hidden = at::linear(hidden, weight).tanh();
      host = (host * host).tanh();
    }
    return backward(hidden.pow(2).sum() + host.sum().to(hidden.device()));
  };
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::unique_ptr<HandStep> step;
    try {
      step = std::make_unique<HandStep>(parameters, std::vector<at::Tensor>{}, body);
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      // Ops at once, or in another order in each of the passes.
      EXPECT_TRUE(text.find("two threads ran ops at once") != std::string::npos ||
                  text.find("a step must do the same each time") != std::string::npos)
          << text;
      continue;
    }
    const Outcome reference = step->plain(0);
    for (const testing::Style& style : styles()) {
      SCOPED_TRACE(style.name);
      const auto plan =
          step->plan(step->lower(offload_made(step->trace(), style.decision)).schedule);
      try {
        testing::expect_same(step->planned(*plan, 0), reference);
      } catch (const c10::Error& error) {
        EXPECT_NE(std::string(error.what()).find("not the one the plan was made for"),
                  std::string::npos)
            << error.what();
      }
    }
  }
}

// In backward the CPU's nodes wait until the GPU's thread is done with its own.
struct OneBehindTheOther {
  std::mutex mutex;
  std::condition_variable changed;
  bool gpu_is_done = false;
  static OneBehindTheOther& only() {
    static OneBehindTheOther turn;
    return turn;
  }
};

// Behind the accumulation of the gradient that is the GPU's last.
struct EndsTheGpusTurn : torch::autograd::FunctionPostHook {
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    OneBehindTheOther& turn = OneBehindTheOther::only();
    const std::scoped_lock lock(turn.mutex);
    turn.gpu_is_done = true;
    turn.changed.notify_all();
    return outputs;
  }
};

// Its backward is the CPU's first.
struct BeginsTheCpusTurn : torch::autograd::Function<BeginsTheCpusTurn> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    OneBehindTheOther& turn = OneBehindTheOther::only();
    std::unique_lock lock(turn.mutex);
    turn.changed.wait(lock, [&] { return turn.gpu_is_done; });
    return gradients;
  }
};

// Two threads that run ops one behind the other do the same each time: recorded, and right.
TEST(TwoDevices, OneBehindTheOtherAreRight) {
  const auto weights = square_weights(4, 128);
  const at::Tensor on_cpu =
      at::rand({64, 64}, at::TensorOptions(at::kCPU).dtype(at::kFloat)).requires_grad_();
  const at::Tensor x = input({64, 128});
  std::vector<at::Tensor> parameters = weights;
  parameters.push_back(on_cpu);
  const auto last = torch::autograd::impl::grad_accumulator(weights[0]);
  last->add_post_hook(std::make_unique<EndsTheGpusTurn>());
  HandStep step(parameters, {x}, [&] {
    OneBehindTheOther::only().gpu_is_done = false;
    at::Tensor hidden = at::linear(x, weights[0]);
    for (std::size_t i = 1; i < weights.size(); ++i) hidden = at::linear(hidden, weights[i]).tanh();
    at::Tensor host = on_cpu * 2;
    for (int i = 0; i < 4; ++i) host = (host * host).tanh();
    host = BeginsTheCpusTurn::apply(host.sum());
    return backward(hidden.pow(2).sum() + host.to(hidden.device()));
  });
  const Outcome reference = step.plain(0);
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto plan = step.plan(step.lower(offload_made(step.trace(), style.decision)).schedule);
    testing::expect_same(step.planned(*plan, 0), reference);
  }
}

// Traps 27 and 29: active and reserved do not creep, and nothing is taken or pinned after step 0.
TEST(ManySteps, TakeNothingFromTheDriverAndPeakAlike) {
  const auto weights = square_weights(6, 512);
  const at::Tensor x = input({2048, 512});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto plan = step.plan(step.lower(offload_made(step.trace(), style.decision)).schedule);
    executor::MemoryStats steady;
    executor::MemoryStats after_first;
    std::size_t events = 0;
    const auto& device = dynamic_cast<const CudaDevice&>(hand_device());
    for (std::int64_t k = 0; k < 8; ++k) {
      static_cast<void>(step.planned(*plan, k));
      const executor::MemoryStats stats = hand_device().memory();
      if (k == 0) after_first = stats;
      if (k == 0) events = device.events_created();
      if (k == 2) steady = stats;
      if (k < 3) continue;
      EXPECT_EQ(stats.peak_requested, steady.peak_requested);
      EXPECT_EQ(stats.peak_active, steady.peak_active);
      EXPECT_EQ(stats.peak_reserved, steady.peak_reserved);
      EXPECT_EQ(stats.driver_allocations, after_first.driver_allocations);
      EXPECT_EQ(stats.pinned_blocks, after_first.pinned_blocks);
      EXPECT_EQ(device.events_created(), events);
    }
  }
}

// Buffers larger than all that is cached take their segments once; nothing stays allocated.
TEST(ReserveSegments, StaysCached) {
  executor::Device& device = hand_device();
  const executor::MemoryStats before = device.memory();
  const Bytes large = (before.reserved / (2 << 20) + 16) * (2 << 20);
  for (int repeat = 0; repeat < 2; ++repeat) {
    executor::reserve_segments(device, {large, large});
    const executor::MemoryStats after = device.memory();
    EXPECT_EQ(after.driver_allocations, before.driver_allocations + 2);
    EXPECT_EQ(after.reserved, before.reserved + 2 * large);
    EXPECT_EQ(after.active, before.active);
    EXPECT_EQ(after.requested, before.requested);
  }
  device.set_memory_limit(device.memory().reserved + (10 << 20));
  executor::reserve_segments(device, {Bytes{1} << 50});  // no room: no error
  device.set_memory_limit(0);
  EXPECT_EQ(device.memory().requested, before.requested);
}

// Trap 27: a real limit under which the planned step runs and the unplanned one does not.
TEST(MemoryLimit, PlannedStepFitsAndTheUnplannedOneDoesNot) {
  const auto weights = square_weights(24, 1024);
  const at::Tensor x = input({8192, 1024});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  const auto lowering = step.lower(offload_made(step.trace(), styles()[1].decision));
  const Bytes planned_peak = simulator::replay(step.index(), lowering.schedule).peak_requested;
  const Outcome reference = step.plain(0);
  ASSERT_LT(planned_peak, reference.peak * 2 / 3);
  const auto plan = step.plan(lowering.schedule);
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const at::Tensor& weight : weights) weight.mutable_grad().reset();
    hand_device().synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    // Halfway between what both need: fragmentation has room, the resident step has none.
    hand_device().set_memory_limit((planned_peak + reference.peak) / 2);
    EXPECT_THROW(step.plain(0), c10::OutOfMemoryError);
    hand_device().synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const Outcome outcome = step.planned(*plan, 0);
    testing::expect_same(outcome, reference);
    EXPECT_EQ(outcome.peak, planned_peak);
    hand_device().set_memory_limit(0);
  }
}

// Trap 28.
TEST(HostArena, HasThePlansSizeAndIsPinnedOnce) {
  const auto weights = square_weights(4, 128);
  const at::Tensor x = input({256, 128});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  for (const testing::Style& style : styles()) {
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const std::int64_t pinned = hand_device().memory().pinned_blocks;
    const auto plan = step.plan(lowering.schedule);
    EXPECT_EQ(plan->host_bytes(), lowering.schedule.host_bytes);
    EXPECT_EQ(hand_device().memory().pinned_blocks, pinned + 1);
    static_cast<void>(step.planned(*plan, 0));
    EXPECT_EQ(plan->host_high_water(), lowering.schedule.host_bytes);
    EXPECT_EQ(hand_device().memory().pinned_blocks, pinned + 1);
  }
}

// Trap 28: where pinning is refused the arena is pageable. Copies then wait by themselves; the
// plan's results are the same, and the device says why it is slow.
TEST(HostArena, PageableWherePinningIsRefusedIsExactAndSaysSo) {
  const auto weights = square_weights(4, 128);
  const at::Tensor x = input({256, 128});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  CudaDevice::Options refused;
  refused.refuse_pinning = true;
  auto device = CudaDevice::create(std::move(refused));
  ASSERT_TRUE(device.ok()) << device.error().text();
  std::size_t arenas = 0;
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const std::int64_t pinned = (*device)->memory().pinned_blocks;
    executor::PlannedStepOptions options;
    options.poison_host = true;
    options.poison_device = true;
    auto plan = executor::PlannedStep::create(**device, std::make_shared<const Trace>(step.trace()),
                                              lowering.schedule, {}, options);
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    for (std::int64_t k = 0; k < 3; ++k) {
      const Outcome reference = step.plain(k);
      const Outcome outcome = step.planned(**plan, k);
      testing::expect_same(outcome, reference);
      EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
      EXPECT_EQ(outcome.peak, simulator::replay(step.index(), lowering.schedule).peak_requested);
    }
    EXPECT_EQ((*device)->memory().pinned_blocks, pinned);
    const auto warnings = (*device)->warnings();
    ASSERT_EQ(warnings.size(), ++arenas);
    EXPECT_NE(warnings.back().find("could not be pinned"), std::string::npos) << warnings.back();
  }
}

// Trap 30: while a copy is under way compute goes on, and only the wait for it stops compute.
class Overlap : public ::testing::TestWithParam<CopyLane> {};

TEST_P(Overlap, ComputeGoesOnBesideACopyAndStallsOnlyAtItsWait) {
  const CopyLane lane = GetParam();
  static std::atomic<bool> held{false};
  CudaDevice::Options options;
  options.delay = [lane](executor::CudaQueue queue, std::uint64_t) {
    const auto mine = lane == CopyLane::d2h ? executor::CudaQueue::d2h : executor::CudaQueue::h2d;
    while (queue == mine && held.load()) std::this_thread::yield();
  };
  auto made = CudaDevice::create(std::move(options));
  ASSERT_TRUE(made.ok()) << made.error().text();
  CudaDevice& device = **made;
  constexpr Bytes kSize = Bytes{1} << 20;
  auto arena = device.host_arena(kSize);
  ASSERT_TRUE(arena.ok());
  const at::Tensor buffer = device.allocate_buffer(kSize, 0);
  void* const memory = buffer.mutable_data_ptr();
  const auto copy = [&] {
    return lane == CopyLane::d2h ? device.copy_async(lane, arena->data(), memory, kSize)
                                 : device.copy_async(lane, memory, arena->data(), kSize);
  };
  // Timing events must exist ahead of the copy that is held: making the first ones waits for the
  // GPU.
  device.time_stalls(true);
  device.wait(copy());
  device.synchronize();
  device.reset_peak();
  EXPECT_EQ(device.stall_ns(), 0);

  held = true;
  const executor::CopyTicket ticket = copy();
  const auto options_of = at::TensorOptions(device.torch_device());
  const at::Tensor a = at::ones({64, 64}, options_of);
  const at::Tensor b = at::mm(a, a);
  device.synchronize_compute();  // returns although the copy is held: compute did not wait
  cudaEvent_t reached = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(reached, c10::cuda::getCurrentCUDAStream().stream()), cudaSuccess);
  device.wait(ticket);
  ASSERT_EQ(cudaEventSynchronize(reached), cudaSuccess);  // compute stands at the wait
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20)) {
  }
  held = false;
  device.synchronize();
  EXPECT_GE(device.stall_ns(), 18'000'000) << "the copy was held for 20 ms at the wait";
  device.reset_peak();
  device.wait(ticket);
  device.synchronize();
  EXPECT_EQ(device.stall_ns(), 0) << "a copy that is done stops nobody";
  ASSERT_EQ(cudaEventDestroy(reached), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(Both, Overlap, ::testing::Values(CopyLane::d2h, CopyLane::h2d),
                         [](const auto& each) {
                           return each.param == CopyLane::d2h ? "Out" : "In";
                         });

// The parameters and batches of a model are the seed's, on a GPU as on the CPU.
TEST(Models, SameSeedGivesTheSameBits) {
  const std::pair<const char*, const char*> models[] = {
      {"gpt2:layers=2,width=64,heads=2,seq=32,vocab=211,dropout=0.1", "fp32"},
      {"mlp:layers=2,width=64", "fp32"},
      {"gpt2:layers=2,width=64,heads=2,seq=32,vocab=211,attention=efficient", "bf16"},
      {"mlp:layers=2,width=64", "tf32"}};
  for (const auto& [spec, dtype] : models) {
    SCOPED_TRACE(std::string(spec) + " " + dtype);
    const auto first = testing::make_session(spec, 4, "adamw", dtype);
    const auto second = testing::make_session(spec, 4, "adamw", dtype);
    for (std::int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(first->step().run(k), second->step().run(k));
      const auto expect_equal = [&](const auto& a, const auto& b) {
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          EXPECT_TRUE(testing::fetch(first->device(), a[i].tensor) ==
                      testing::fetch(first->device(), b[i].tensor))
              << a[i].name;
        }
      };
      expect_equal(first->step().parameters(), second->step().parameters());
      expect_equal(first->step().gradients(), second->step().gradients());
      expect_equal(first->step().model().inputs(), second->step().model().inputs());
    }
  }
}

}  // namespace
}  // namespace stowage
