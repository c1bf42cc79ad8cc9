#include "gui/model/comparison.h"

#include <gtest/gtest.h>

namespace stowage::gui {
namespace {

using report::Fact;
using report::FactUnit;

TEST(Comparison, SaysAbsoluteAndRelativeDifferences) {
  const std::vector<Fact> before{{"", "peak_active_bytes", FactUnit::bytes, std::int64_t{2'000}},
                                 {"", "step_ns", FactUnit::nanoseconds, std::int64_t{500}},
                                 {"", "gone", FactUnit::number, std::int64_t{1}},
                                 {"by layer", "a", FactUnit::bytes, std::int64_t{7}}};
  const std::vector<Fact> after{{"", "peak_active_bytes", FactUnit::bytes, std::int64_t{1'500}},
                                {"", "step_ns", FactUnit::nanoseconds, std::int64_t{500}},
                                {"by layer", "a", FactUnit::bytes, std::int64_t{7}},
                                {"", "new", FactUnit::number, std::int64_t{3}}};
  const auto rows = compared(before, after);
  ASSERT_EQ(rows.size(), 4U) << "an equal row of a layer is left out";
  EXPECT_EQ(rows[0].name, "peak active");
  EXPECT_EQ(rows[0].difference, "-500 B");
  EXPECT_EQ(rows[0].relative, "-25.0 %");
  EXPECT_EQ(rows[0].sign, -1);
  EXPECT_EQ(rows[0].exact, "2,000, then 1,500 bytes");
  EXPECT_EQ(rows[1].difference, "=");
  EXPECT_EQ(rows[1].relative, "");
  EXPECT_EQ(rows[2].after, "–");
  EXPECT_EQ(rows[3].before, "–");
  EXPECT_EQ(rows[3].after, "3");
}

TEST(Comparison, WhatOnlyOneHasStandsAtItsPlace) {
  const auto fact = [](const char* section, const char* name, std::int64_t value) {
    return Fact{section, name, FactUnit::number, value};
  };
  const auto rows = compared(
      {fact("", "a", 1), fact("", "old", 2), fact("", "c", 3)},
      {fact("", "a", 1), fact("", "b", 2), fact("", "c", 4), fact("", "d", 5), fact("x", "e", 6)});
  std::string names;
  for (const ComparedRow& row : rows) names += row.name + " ";
  EXPECT_EQ(names, "a old b c d e ");
  EXPECT_EQ(rows[3].whole_difference(), "+1 (+33.3 %)");
  EXPECT_EQ(rows[0].whole_difference(), "=");
}

}  // namespace
}  // namespace stowage::gui
