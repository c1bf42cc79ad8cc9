#include "executor/device/step_memory.h"

#include <gtest/gtest.h>

namespace stowage::executor {
namespace {

int g_of_the_process = 0;
int g_of_a_guard = 0;

// Its owner is never asked.
StepMemory* memory(int& identity) {
  return reinterpret_cast<StepMemory*>(&identity);
}

TEST(StepMemoryGuard, TheLastOneThatLivesDecidesNoneIncluded) {
  set_current_memory([] { return memory(g_of_the_process); });
  EXPECT_EQ(current_memory(), memory(g_of_the_process));
  {
    const StepMemoryGuard outer(memory(g_of_a_guard));
    EXPECT_EQ(current_memory(), memory(g_of_a_guard));
    {
      const StepMemoryGuard inner(nullptr);
      EXPECT_EQ(current_memory(), nullptr);
    }
    EXPECT_EQ(current_memory(), memory(g_of_a_guard));
  }
  EXPECT_EQ(current_memory(), memory(g_of_the_process));
  {
    const StepMemoryGuard none(nullptr);
    EXPECT_EQ(current_memory(), nullptr);
  }
  set_current_memory(nullptr);
  EXPECT_EQ(current_memory(), nullptr);
}

}  // namespace
}  // namespace stowage::executor
