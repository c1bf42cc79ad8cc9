#include "cli/text_table.h"

#include <gtest/gtest.h>

#include "cli/paint.h"
#include "report/words.h"

namespace stowage::cli {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirLongestCell) {
  TextTable table;
  table.column("name");
  table.column("bytes", Align::right);
  table.row({"a", "1"});
  table.row({"longer", "1,000"});
  EXPECT_EQ(table.text(2),
            "  name    bytes\n"
            "  a           1\n"
            "  longer  1,000\n");
}

TEST(TextTable, WithoutTitlesAndWithMissingCells) {
  TextTable table;
  table.column("");
  table.column("");
  table.row({"a"});
  table.row({"b", "c"});
  EXPECT_EQ(table.text(), "a\nb  c\n");
}

TEST(TextTable, ColoursAndAccentsTakeNoRoom) {
  EXPECT_EQ(display_width("\x1b[1;31mred\x1b[0m"), 3U);
  EXPECT_EQ(display_width("▂é"), 2U);
  TextTable table;
  table.column("");
  table.column("");
  table.row({Paint(true).green("yes"), "x"});
  table.row({"no", "x"});
  EXPECT_EQ(table.text(), "\x1b[32myes\x1b[0m  x\nno   x\n");
}

TEST(Words, NumbersForTheEyeAndForTheTest) {
  EXPECT_EQ(report::with_commas(0), "0");
  EXPECT_EQ(report::with_commas(-999), "-999");
  EXPECT_EQ(report::with_commas(1000), "1,000");
  EXPECT_EQ(report::with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(report::exact_bytes(161480704), "161 MB (161,480,704 bytes)");
  EXPECT_EQ(report::exact_bytes(12), "12 B");
  EXPECT_EQ(report::relative(110, 100), "+10.0 %");
  EXPECT_EQ(report::relative(0, 0), "-");
  EXPECT_EQ(report::percent(1, 8), "12.5 %");
  EXPECT_EQ(report::count_of(1, "op"), "1 op");
  EXPECT_EQ(report::count_of(2000, "op"), "2,000 ops");
}

}  // namespace
}  // namespace stowage::cli
