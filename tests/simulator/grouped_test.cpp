#include "simulator/step/grouped.h"

#include <gtest/gtest.h>

namespace stowage::simulator {
namespace {

TEST(Grouped, RowsOfAGroupStayInTheOrderGiven) {
  const Grouped<int> rows(4, {{2, 7}, {0, 5}, {2, 3}, {0, 1}});
  EXPECT_EQ((std::vector<int>{rows[0].begin(), rows[0].end()}), (std::vector<int>{5, 1}));
  EXPECT_TRUE(rows[1].empty());
  EXPECT_EQ((std::vector<int>{rows[2].begin(), rows[2].end()}), (std::vector<int>{7, 3}));
  EXPECT_TRUE(rows[3].empty());
}

TEST(Grouped, GroupsWithoutRowsAreEmpty) {
  const Grouped<int> rows(2, {});
  EXPECT_TRUE(rows[0].empty());
  EXPECT_TRUE(rows[1].empty());
}

}  // namespace
}  // namespace stowage::simulator
