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

}  // namespace
}  // namespace stowage
