#include "report/answers/text_table.h"

#include <gtest/gtest.h>

#include "report/answers/paint.h"

namespace stowage::report {
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

}  // namespace
}  // namespace stowage::report
