#include "report/words.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

TEST(Words, NumbersForTheEyeAndForTheTest) {
  EXPECT_EQ(report::with_commas(0), "0");
  EXPECT_EQ(report::with_commas(-999), "-999");
  EXPECT_EQ(report::with_commas(1000), "1,000");
  EXPECT_EQ(report::with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(report::exact_bytes(161480704), "161 MB (161,480,704 bytes)");
  EXPECT_EQ(report::exact_bytes(12), "12 B");
  EXPECT_EQ(report::relative(110, 100), "+10.0 %");
  EXPECT_EQ(report::relative(0, 0), "-");
  EXPECT_EQ(report::relative(99'999, 100'000), "+0.0 %");  // no negative zero
  EXPECT_EQ(report::relative(99'949, 100'000), "-0.1 %");
  EXPECT_EQ(report::percent(-1, 100'000), "0.0 %");
  EXPECT_EQ(report::percent_text(-0.004, 2, true), "+0.00 %");
  EXPECT_EQ(report::percent_text(-0.006, 2, true), "-0.01 %");
  EXPECT_EQ(report::percent(1, 8), "12.5 %");
  EXPECT_EQ(report::count_of(1, "op"), "1 op");
  EXPECT_EQ(report::count_of(2000, "op"), "2,000 ops");
}

}  // namespace
}  // namespace stowage
