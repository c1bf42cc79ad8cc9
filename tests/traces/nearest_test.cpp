#include "traces/nearest.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

const std::vector<std::string> kPolicies = {"resident", "save_on_cpu", "torchtune", "thunder",
                                            "auto"};

TEST(Nearest, FindsTheTypo) {
  EXPECT_EQ(nearest("torchtun", kPolicies), "torchtune");
  EXPECT_EQ(nearest("Thundr", kPolicies), "thunder");
  EXPECT_EQ(nearest("save-on-cpu", kPolicies), "save_on_cpu");
  EXPECT_EQ(nearest("auto", kPolicies), "auto");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest("zzzzzz", kPolicies), "");
  EXPECT_EQ(nearest("", kPolicies), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("x", {"y"}), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), kPolicies), "");
}

TEST(Nearest, PrefersTheSmallerDistanceThenTheFirst) {
  EXPECT_EQ(nearest("layer.1", {"layers.2", "layers.1"}), "layers.1");
  EXPECT_EQ(nearest("abc", {"abd", "abe"}), "abd");
}

// Of a file somebody else wrote: the search ends, and long words have no neighbour.
TEST(Nearest, IsBounded) {
  const std::string long_word(kLongestNearest, 'x');
  EXPECT_EQ(nearest(long_word, {long_word + "y"}), long_word + "y");
  EXPECT_EQ(nearest(long_word + "x", {long_word + "y"}), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'x'), {std::string(1 << 20, 'y')}), "");
  // 2,000 steps a candidate, of a hundred million.
  std::vector<std::string> many(200'000, std::string(50, 'y'));
  many.front() = std::string(39, 'x') + "y";
  many.back() = std::string(40, 'x');
  EXPECT_EQ(nearest(std::string(40, 'x'), many), many.front());
}

}  // namespace
}  // namespace stowage
