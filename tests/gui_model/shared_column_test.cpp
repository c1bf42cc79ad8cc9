#include "gui/model/shared_column.h"

#include <gtest/gtest.h>

namespace stowage::gui {
namespace {

TEST(SharedColumn, ACopyHoldsTheSameRowAndANewOneDoesNotChangeIt) {
  SharedColumn<int> first(std::vector<int>{1, 2, 3});
  SharedColumn<int> second = first;
  EXPECT_TRUE(second.shares_with(first));
  second = std::vector<int>{4};
  EXPECT_FALSE(second.shares_with(first));
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[2], 3);
  EXPECT_EQ(second[0], 4);
}

TEST(SharedColumn, OutlivesWhomItWasCopiedFrom) {
  SharedColumn<int> kept;
  {
    const SharedColumn<int> made(std::vector<int>{7, 8});
    kept = made;
  }
  EXPECT_EQ(std::vector<int>(kept.begin(), kept.end()), (std::vector<int>{7, 8}));
}

TEST(SharedColumn, IsEqualByItsValues) {
  const SharedColumn<int> a(std::vector<int>{1, 2});
  const SharedColumn<int> b(std::vector<int>{1, 2});
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a.shares_with(b));
  EXPECT_NE(a, SharedColumn<int>(std::vector<int>{1, 3}));
}

TEST(SharedColumn, OfNothingIsEmpty) {
  const SharedColumn<int> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
}

}  // namespace
}  // namespace stowage::gui
