#include "report/answers/terminal_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/answers/text_table.h"

namespace stowage::report {
namespace {

using ::testing::HasSubstr;

// 100 bytes from 0 to 5, 300 at 5 for no time at all, 200 from 5 to 10.
const MemoryCurve kCurve = {{0, 5, 5}, {100, 300, 200}, 10};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TerminalPlot, DrawsInWholeCellsWithoutUnicode) {
  PlotOptions options;
  options.width = 40;
  options.height = 3;
  options.unicode = false;
  const auto lines = lines_of(draw(kCurve, options));
  // 300 is the top; 100 of 300 fills one of three rows, 200 two of them. The label takes 5 columns,
  // the axis 2, 33 columns are left; time 5 of 10 is column 16.
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "300 B |" + std::string(16, ' ') + "#");
  EXPECT_EQ(lines[1], "      |" + std::string(16, ' ') + std::string(17, '#'));
  EXPECT_EQ(lines[2], "    0 |" + std::string(33, '#'));
}

TEST(TerminalPlot, DrawsEighthsWithUnicode) {
  PlotOptions options;
  options.width = 40;
  options.height = 2;
  // Of 16 eighths 100/300 fills 5.33, rounded up 6; 200/300 10.67, up to 11.
  const auto lines = lines_of(draw(kCurve, options));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1], HasSubstr("▆▆▆"));
  EXPECT_THAT(lines[0], HasSubstr("█▃▃▃"));
  for (const auto& line : lines) EXPECT_LE(display_width(line), 40U);
}

TEST(TerminalPlot, TheBudgetIsALineWithALabel) {
  PlotOptions options;
  options.width = 60;
  options.height = 4;
  options.unicode = false;
  options.budget = 220;
  const auto lines = lines_of(draw(kCurve, options));
  // A row is 75 bytes; 220 lies in the third from below, where 100 does not reach and 200 does.
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[1], HasSubstr("220 B |---"));
  EXPECT_THAT(lines[1], HasSubstr("# budget"));
}

TEST(TerminalPlot, ABudgetAboveTheCurveIsOnTheDrawing) {
  PlotOptions options;
  options.unicode = false;
  options.budget = 600;
  const auto lines = lines_of(draw(kCurve, options));
  EXPECT_THAT(lines.front(), HasSubstr("600 B |----"));
}

TEST(TerminalPlot, SpansAreNamedBelowTheAxis) {
  PlotOptions options;
  options.width = 40;
  options.unicode = false;
  options.spans = {{"forward", 0}, {"backward", 5}};
  const auto lines = lines_of(draw(kCurve, options));
  EXPECT_EQ(lines.back(), "       |forward        |backward");
}

TEST(TerminalPlot, ASpanWithoutRoomHasNoName) {
  PlotOptions options;
  options.width = 40;
  options.unicode = false;
  options.spans = {{"zero_grad", 0}, {"forward", 0}, {"backward", 9}};
  const auto lines = lines_of(draw(kCurve, options));
  EXPECT_EQ(lines.back(), "       |forward                     |ba");
}

TEST(TerminalPlot, NothingIsDrawnOfNothing) {
  EXPECT_EQ(draw({}, {}), "");
  EXPECT_THAT(draw({{0}, {0}, 0}, {}), HasSubstr("0"));
}

TEST(TerminalPlot, EveryLineFitsTheWidth) {
  for (int width = 40; width <= 200; width += 13) {
    PlotOptions options;
    options.width = width;
    options.budget = 123456789;
    options.spans = {{"forward", 0}, {"backward", 5}};
    for (const auto& line : lines_of(draw(kCurve, options))) {
      EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

}  // namespace
}  // namespace stowage::report
