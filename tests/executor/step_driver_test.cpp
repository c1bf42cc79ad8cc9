// The current driver: whose it is, on which threads, and for how long.
#include "executor/step_driver.h"

#include <ATen/ThreadLocalState.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <optional>
#include <thread>

namespace stowage::executor {
namespace {

class SilentDriver final : public StepDriver {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
  void layer_event(LayerEvent, std::string_view) override {}
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(UpdateEvent, const at::Tensor&) override {}
};

StepDriver* on_another_thread(const at::ThreadLocalState* state) {
  StepDriver* seen = nullptr;
  std::thread([&] {
    std::optional<at::ThreadLocalStateGuard> guard;
    if (state != nullptr) guard.emplace(*state);
    seen = driver();
  }).join();
  return seen;
}

TEST(InstalledDriver, IsOfItsThreadAndOfThoseThatRunForIt) {
  SilentDriver a;
  EXPECT_EQ(driver(), nullptr);
  const at::ThreadLocalState before;
  {
    const InstalledDriver installed(a);
    EXPECT_EQ(driver(), &a);
    EXPECT_EQ(on_another_thread(nullptr), nullptr);
    EXPECT_EQ(on_another_thread(&before), nullptr);
    const at::ThreadLocalState during;  // as autograd takes it for its threads
    EXPECT_EQ(on_another_thread(&during), &a);
  }
  EXPECT_EQ(driver(), nullptr);
}

TEST(InstalledDriver, IsGoneForEverybodyOnceItIsRemoved) {
  SilentDriver a;
  InstalledDriver installed(a);
  const at::ThreadLocalState state;
  const std::shared_ptr<const DriverLink> link = driver_link();
  EXPECT_EQ(driver_of(link.get()), &a);
  std::thread([&] { installed.remove(); }).join();
  EXPECT_EQ(driver(), nullptr);
  EXPECT_EQ(driver_link(), nullptr);
  EXPECT_EQ(driver_of(link.get()), nullptr);
  EXPECT_EQ(driver_of(nullptr), nullptr);
  EXPECT_EQ(on_another_thread(&state), nullptr);
  installed.resume();  // nothing to go on
  EXPECT_EQ(driver(), nullptr);
}

TEST(InstalledDriver, StandsInFrontOfTheOneBefore) {
  SilentDriver a;
  SilentDriver b;
  SilentDriver c;
  InstalledDriver first(a);
  InstalledDriver second(b);
  EXPECT_EQ(driver(), &b);
  first.resume();
  EXPECT_EQ(driver(), &a);
  second.resume();
  InstalledDriver third(c);
  second.remove();
  EXPECT_EQ(driver(), &c);
  third.remove();
  EXPECT_EQ(driver(), &a) << "the one between is passed over";
  first.remove();
  EXPECT_EQ(driver(), nullptr);
}

TEST(InstalledDriver, CanBeMovedAndReplaced) {
  SilentDriver a;
  SilentDriver b;
  InstalledDriver installed(a);
  InstalledDriver moved(std::move(installed));
  EXPECT_EQ(driver(), &a);
  moved = InstalledDriver(b);
  EXPECT_EQ(driver(), &b);
  moved = InstalledDriver();
  EXPECT_EQ(driver(), nullptr);
}

// What a step leaves on its thread does not grow with the steps.
TEST(InstalledDriver, EndedOnAnotherThreadLeavesNoChain) {
  SilentDriver a;
  std::weak_ptr<const DriverLink> oldest;
  for (int i = 0; i < 3; ++i) {
    InstalledDriver installed(a);
    if (i == 0) oldest = driver_link();
    std::thread([&] { installed.remove(); }).join();
  }
  EXPECT_TRUE(oldest.expired());
}

}  // namespace
}  // namespace stowage::executor
