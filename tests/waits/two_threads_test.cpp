// Hooks of one planned step on two threads at once, as a graph over the CPU and a GPU has them:
// they take turns, and what they get is right or refused.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "tests/profiler_torch/hand_step.h"
#include "tests/waits/late_device.h"

namespace stowage {
namespace {

using executor::OffPlan;
using testing::expect_same;
using testing::hand_device;
using testing::HandStep;
using testing::LateDevice;
using testing::Outcome;
using testing::parameter;

class TwoThreads : public ::testing::TestWithParam<OffPlan> {};

TEST_P(TwoThreads, TakeTurnsAndAreRightOrRefused) {
  const at::Tensor p = parameter({16, 16});
  const at::Tensor q = parameter({16, 16});
  bool at_once = false;
  HandStep step({p, q}, {}, [&] {
    const auto graph = [](const at::Tensor& leaf) {
      at::Tensor hidden = leaf * 2;
      for (int i = 0; i < 8; ++i) hidden = (hidden * hidden).tanh();
      return hidden.sum();
    };
    const at::Tensor a = graph(p);
    const at::Tensor b = graph(q);
    if (!at_once) {
      a.backward();
      b.backward();
      return 0.0;
    }
    std::future<void> other = std::async(std::launch::async, [&] { b.backward(); });
    std::exception_ptr thrown;
    try {
      a.backward();
    } catch (...) {
      thrown = std::current_exception();
    }
    other.get();
    if (thrown) std::rethrow_exception(thrown);
    return 0.0;
  });
  LateDevice device(hand_device());
  // Whoever is inside of the plan gives another thread the chance to come in as well.
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  device.set_before_call([&] {
    const int now = inside.fetch_add(1) + 1;
    if (now > most.load()) most = now;
    for (int i = 0; i < 200; ++i) std::this_thread::yield();
    inside.fetch_sub(1);
  });
  for (const testing::Style& style : testing::styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(testing::offload_made(step.trace(), style.decision));
    executor::PlannedStepOptions options;
    options.off_plan = GetParam();
    options.poison_device = true;
    auto plan = executor::PlannedStep::create(device, std::make_shared<const Trace>(step.trace()),
                                              lowering.schedule, {}, options);
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    at_once = false;
    const Outcome reference = step.plain(0);
    for (int repeat = 0; repeat < 5; ++repeat) {
      at_once = true;
      try {
        expect_same(step.planned(**plan, 0), reference);
      } catch (const std::exception& error) {
        EXPECT_EQ(GetParam(), OffPlan::refuse) << error.what();
        EXPECT_NE(std::string(error.what()).find("not the one the plan was made for"),
                  std::string::npos)
            << error.what();
      }
      at_once = false;
      expect_same(step.planned(**plan, 0), reference);  // the next step is clean
    }
  }
  EXPECT_EQ(most.load(), 1);
  EXPECT_EQ(device.freed_under_copy(), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, TwoThreads, ::testing::Values(OffPlan::refuse, OffPlan::offload_all),
                         [](const auto& each) {
                           return each.param == OffPlan::refuse ? "Refused" : "OffloadAll";
                         });

}  // namespace
}  // namespace stowage
