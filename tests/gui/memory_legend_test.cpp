#include "gui/widgets/memory_legend.h"

#include <algorithm>

#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

class MemoryLegend : public testing::WindowTest {
 protected:
  MemoryLegend() { open(testing::kLlama); }
  std::vector<StorageClass> named(int width) {
    const MemoryView& view = memory().view()->memory;
    std::vector<StorageClass> classes;
    for (const std::size_t row : legend_of(view, memory().fontMetrics(), width)) {
      classes.push_back(view.classes[row]);
    }
    return classes;
  }
};

TEST_F(MemoryLegend, WithRoomItNamesEveryClassInTheOrderOfTheStack) {
  std::vector<StorageClass> stack = memory().view()->memory.classes;
  std::reverse(stack.begin(), stack.end());
  EXPECT_EQ(named(5000), stack);
}

TEST_F(MemoryLegend, WithoutRoomTheLargestAtThePeakAreNamed) {
  // Activations 57 %, parameters 19 %, temporaries 19 %, gradients 5 % of the peak; then kilobytes.
  for (int width = 5000; width > 0; width -= 10) {
    const auto classes = named(width);
    const auto has = [&](StorageClass at) {
      return std::find(classes.begin(), classes.end(), at) != classes.end();
    };
    EXPECT_TRUE(classes.size() < 1 || has(StorageClass::activation)) << width;
    EXPECT_TRUE(classes.size() < 2 || has(StorageClass::parameter)) << width;
    EXPECT_TRUE(classes.size() < 3 || has(StorageClass::temporary)) << width;
  }
  EXPECT_TRUE(named(0).empty());
}

}  // namespace
}  // namespace stowage::gui
