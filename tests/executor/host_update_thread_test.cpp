// The thread that updates parameters on the host: in order, behind the copies that bring their
// gradients, with what an update throws.
#include "executor/host_update_thread.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <vector>

#include "executor/device/cpu_device.h"
#include "executor/device/host_arena.h"
#include "executor/device/host_work.h"
#include "executor/optimizer.h"
#include "tests/support/or_throw.h"

namespace stowage::executor {
namespace {

using testing::or_throw;

// What an update reads was written by a copy of the device's, and what it writes is read by whoever
// has waited for it: no lock of their own.
TEST(HostUpdateThread, UpdatesInOrderBehindTheirCopies) {
  Device& device = *or_throw(cpu_device());
  constexpr Bytes kBytes = 4096;  // of each gradient
  constexpr int kUpdates = 200;
  const HostArena arena = or_throw(device.host_arena(kUpdates * kBytes));
  std::vector<std::byte> source(static_cast<std::size_t>(kUpdates * kBytes));
  std::vector<int> order;
  std::vector<int> first_byte;
  HostUpdateThread thread(device);
  for (int i = 0; i < kUpdates; ++i) {
    std::byte* const from = source.data() + i * kBytes;
    std::byte* const home = arena.data() + i * kBytes;
    *from = static_cast<std::byte>(i);
    const CopyTicket copy = device.copy_async(CopyLane::d2h, home, from, kBytes);
    const std::uint64_t number = thread.submit(copy, [&, i, home] {
      order.push_back(i);
      first_byte.push_back(static_cast<int>(*home));
    });
    EXPECT_EQ(number, static_cast<std::uint64_t>(i) + 1);
    if (i % 3 > 0) continue;
    thread.wait(number);
    ASSERT_EQ(order.size(), static_cast<std::size_t>(i) + 1);
    ASSERT_EQ(first_byte.back(), i % 256);
  }
  thread.wait_for_all();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(kUpdates));
  for (int i = 0; i < kUpdates; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(HostUpdateThread, WhatAnUpdateThrowsComesOnceAndTheOthersBehindItAreLeftOut) {
  HostUpdateThread thread(*or_throw(cpu_device()));
  int done = 0;
  thread.wait(thread.submit({}, [&] { ++done; }));
  std::promise<void> is_submitted;
  const std::uint64_t bad = thread.submit({}, [&] {
    is_submitted.get_future().wait();
    throw std::runtime_error("no memory");
  });
  const std::uint64_t behind = thread.submit({}, [&] { ++done; });
  is_submitted.set_value();
  EXPECT_THROW(thread.wait(bad), std::runtime_error);
  thread.wait(behind);
  EXPECT_EQ(done, 1);
  thread.wait(thread.submit({}, [&] { ++done; }));
  EXPECT_EQ(done, 2);
  static_cast<void>(thread.submit({}, [] { throw std::runtime_error("dropped"); }));
  thread.drop();
  thread.wait_for_all();
}

TEST(HostUpdateThread, FinishesWhatIsSubmittedBeforeItEnds) {
  int done = 0;
  {
    HostUpdateThread thread(*or_throw(cpu_device()));
    for (int i = 0; i < 50; ++i) static_cast<void>(thread.submit({}, [&] { ++done; }));
  }
  EXPECT_EQ(done, 50);
}

// An optimizer's update there is the one here, bit by bit, and none of its memory is the device's.
TEST(HostUpdateThread, DoesPyTorchsArithmeticOnHostMemory) {
  Device& device = *or_throw(cpu_device());
  const Bytes before = device.memory().requested;
  struct Run {
    at::Tensor weights, gradient, first, second;
    std::unique_ptr<Optimizer> optimizer;
    HostTensors tensors;
    Run() {
      const HostWorkGuard host_work;
      weights = at::full({1000}, 0.5);
      gradient = at::full({1000}, 0.25);
      first = at::full({1000}, 0.0);
      second = at::full({1000}, 0.0);
      const NamedTensor parameter{"p", weights};
      optimizer = make_optimizer(OptimizerKind::adamw, {parameter});
      optimizer->make_state({parameter});
      tensors = {weights, gradient, {{"p.exp_avg", first}, {"p.exp_avg_sq", second}}};
    }
  };
  Run here;
  Run there;
  {
    HostUpdateThread thread(device);
    for (int i = 0; i < 5; ++i) {
      {
        const HostWorkGuard host_work;
        here.optimizer->step_on_host(0, here.tensors);
      }
      static_cast<void>(
          thread.submit({}, [&] { there.optimizer->step_on_host(0, there.tensors); }));
    }
    thread.wait_for_all();
  }
  EXPECT_TRUE(here.weights.equal(there.weights));
  EXPECT_TRUE(here.second.equal(there.second));
  EXPECT_LT(there.weights[0].item<float>(), 0.5F);
  EXPECT_EQ(device.memory().requested, before);
}

}  // namespace
}  // namespace stowage::executor
