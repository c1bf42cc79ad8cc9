#include "executor/host_team.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "executor/device/host_work.h"
#include "executor/optimizer.h"
#include "tests/support/or_throw.h"

namespace stowage::executor {
namespace {

HostParts parts_of(std::int64_t count) {
  return HostParts(
      {at::zeros({count * kHostPartElements}), at::zeros({count * kHostPartElements}), {}});
}

// Threads that an op of PyTorch's may use, on this thread, while it lives.
class Threads {
 public:
  explicit Threads(int count) : previous_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(previous_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int previous_;
};

constexpr int kSteps = 3;

at::Tensor gradient_of(const at::Tensor& begin, int step, at::ScalarType dtype) {
  return at::sin(begin * (step + 1)).to(dtype);
}

// Weights behind some updates, as a plan has the host do them.
at::Tensor updated_in_parts(const std::string& optimizer, at::ScalarType dtype,
                            const at::Tensor& begin) {
  HostTensors tensors{begin.to(dtype, false, /*copy=*/true), {}, {}};
  const NamedTensor parameter{"p", tensors.weights};
  const auto own = make_optimizer(testing::or_throw(parse_optimizer(optimizer)), {parameter});
  own->make_state({parameter});
  for (const NamedTensor& each : own->state()) {
    at::Tensor piece = at::zeros(begin.sizes(), each.tensor.scalar_type());
    if (each.name == "p.master") piece.copy_(tensors.weights);
    if (each.name == "p.momentum_buffer") piece.fill_(-0.0);
    tensors.state.push_back({each.name, piece});
  }
  for (int k = 0; k < kSteps; ++k) {
    tensors.gradient = gradient_of(begin, k, dtype);
    own->step_on_host(0, tensors);
  }
  return tensors.weights;
}

// Behind the same ones of PyTorch's whole step.
at::Tensor updated_whole(const std::string& optimizer, at::ScalarType dtype,
                         const at::Tensor& begin) {
  at::Tensor weights = begin.to(dtype, false, /*copy=*/true);
  const auto own = make_optimizer(testing::or_throw(parse_optimizer(optimizer)), {{"p", weights}});
  for (int k = 0; k < kSteps; ++k) {
    weights.mutable_grad() = gradient_of(begin, k, dtype);
    own->step();
  }
  return weights;
}

TEST(HostTeam, DoesEachPartOnceAsWorkOfTheHost) {
  for (const int threads : {1, 3}) {
    const Threads several(threads);
    const at::Tensor weights = at::zeros({100 * kHostPartElements + 1});
    HostTeam team;
    for (int k = 0; k < 3; ++k) {
      team.for_each(HostParts({weights, weights, {}}), [&](const HostTensors& part) {
        EXPECT_TRUE(is_host_work());
        EXPECT_FALSE(at::GradMode::is_enabled());
        at::Tensor some = part.weights;
        some.add_(1);
      });
      EXPECT_TRUE(weights.eq(k + 1).all().item<bool>());
    }
  }
}

TEST(HostTeam, DoesAsManyPartsAtOnceAsPyTorchHasThreads) {
  const Threads several(3);
  std::mutex mutex;
  std::condition_variable all_there;
  int there = 0;
  std::atomic<int> alone = 0;
  HostTeam().for_each(parts_of(3), [&](const HostTensors&) {
    std::unique_lock lock(mutex);
    ++there;
    all_there.notify_all();
    if (!all_there.wait_for(lock, std::chrono::seconds(60), [&] { return there == 3; })) ++alone;
  });
  EXPECT_EQ(alone, 0);
}

int threads_of_the_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// No op has threads of its own beside the team's: not PyTorch's loops, and not MKL's square roots.
TEST(HostTeam, DividesNoOpOfAPart) {
  const Threads several(4);
  at::Tensor weights = at::ones({40 * kHostPartElements});
  HostTeam team;
  const HostParts parts({weights, weights, {}});
  const int before = threads_of_the_process();
  std::atomic<int> divided = 0;
  team.for_each(parts, [&](const HostTensors& part) {
    divided += at::get_num_threads() > 1 ? 1 : 0;
    at::Tensor some = part.weights;
    some.copy_(at::sqrt(some).mul_(2));
  });
  EXPECT_EQ(divided, 0);
  EXPECT_LE(threads_of_the_process(), before + 4);
  EXPECT_EQ(at::get_num_threads(), 4);
  EXPECT_TRUE(weights.eq(2).all().item<bool>());
}

TEST(HostTeam, ThrowsWhatOneThrewAndGoesOn) {
  for (const int threads : {1, 3}) {
    const Threads several(threads);
    HostTeam team;
    EXPECT_THROW(
        team.for_each(parts_of(8), [](const HostTensors&) { throw std::runtime_error("no"); }),
        std::runtime_error);
    std::atomic<int> done = 0;
    team.for_each(parts_of(8), [&](const HostTensors&) { ++done; });
    EXPECT_EQ(done, 8);
  }
}

// On one thread that of PyTorch's whole step, and on several the same.
TEST(HostTeam, DoesTheArithmeticOfOneThread) {
  const at::Tensor begin = at::cos(at::arange(0, 300001, at::kFloat));
  for (const std::string optimizer :
       {"sgd:momentum=0", "sgd:momentum=0.9,dampening=0.1", "adam:lr=0.01", "adamw:lr=0.01"}) {
    for (const auto& [dtype, master] :
         {std::pair{at::kFloat, ""}, {at::kBFloat16, ",master=fp32"}}) {
      const std::string spec = optimizer + master;
      const at::Tensor whole = [&] {
        const Threads one(1);
        return updated_whole(spec, dtype, begin);
      }();
      EXPECT_FALSE(whole.equal(begin.to(dtype))) << spec;
      for (const int count : {1, 2, 3}) {
        const Threads several(count);
        EXPECT_TRUE(updated_in_parts(spec, dtype, begin).equal(whole)) << spec << ", " << count;
      }
    }
  }
}

}  // namespace
}  // namespace stowage::executor
