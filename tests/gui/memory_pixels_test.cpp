// The memory curve against a brute force over all points: pixel by pixel, at random zooms.
#include <algorithm>
#include <random>

#include "gui/widgets/memory_image.h"
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

class MemoryPixels : public testing::WindowTest {};

// The curve alone: nothing above it.
QImage memory_image(const MemoryView& memory, const TimeAxis& axis, const ByteAxis& bytes,
                    const CurveInk& ink) {
  QImage image(static_cast<int>(axis.width()), bytes.height, QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  paint_memory(memory, axis, bytes, ink, image, {0, 0});
  return image;
}

// The highest total that holds at any moment of [begin, end).
Bytes highest(const MemoryView& memory, double begin, double end) {
  Bytes most = 0;
  for (std::size_t i = 0; i < memory.time.size(); ++i) {
    const auto from = static_cast<double>(memory.time[i]);
    const double until =
        i + 1 < memory.time.size() ? static_cast<double>(memory.time[i + 1]) : 1e18;
    const bool seen = from < end && (until > begin || from >= begin);
    if (seen) most = std::max(most, memory.total[i]);
  }
  return most;
}

TEST_F(MemoryPixels, ThePeakIsOnTheRightPixelAtTwoHundredRandomZooms) {
  open(testing::kLlama);
  const MemoryView& memory = this->memory().view()->memory;
  const Theme theme = Theme::of(QPalette());
  const ByteAxis bytes{top_of(memory.peak(), 0), 300};
  std::mt19937 random(20261122);
  std::uniform_real_distribution<double> share(0, 1);
  const auto peak_time = static_cast<double>(memory.time[memory.peak_at]);
  for (int zoom = 0; zoom < 200; ++zoom) {
    TimeAxis axis(window_.document().planned()->end, 400);
    const double span = std::pow(10.0, 4 + share(random) * 5);
    axis.show(peak_time - span * share(random), peak_time + span * share(random));
    const QImage image = memory_image(memory, axis, bytes, {.theme = theme, .grid_rows = {}});
    // The peak's own column reaches exactly as high as the peak.
    const int x = std::min(399, static_cast<int>(axis.x_of(memory.time[memory.peak_at])));
    const int top = bytes.y_of(memory.peak());
    EXPECT_NE(qAlpha(image.pixel(x, top)), 0) << "zoom " << zoom;
    EXPECT_EQ(qAlpha(image.pixel(x, top - 1)), 0) << "zoom " << zoom;
    // And every other column as high as the highest moment in it.
    for (int i = 0; i < 10; ++i) {
      const int column = static_cast<int>(share(random) * 399);
      const Bytes expected = highest(memory, axis.time_at(column), axis.time_at(column + 1));
      int y = 0;
      while (y < image.height() && qAlpha(image.pixel(column, y)) == 0) ++y;
      EXPECT_EQ(y, bytes.y_of(expected)) << "zoom " << zoom << ", column " << column;
    }
  }
}

TEST_F(MemoryPixels, ClassesAreStackedInTheOrderOfTheLegend) {
  MemoryView memory;
  memory.classes = {StorageClass::parameter, StorageClass::activation};
  memory.event = std::vector<EventId>(1);
  memory.time = std::vector<Nanoseconds>{0};
  memory.bytes = {std::vector<Bytes>{30}, std::vector<Bytes>{50}};
  memory.total = MinMaxPyramid({80});
  const Theme theme = Theme::of(QPalette());
  const ByteAxis bytes{100, 100};
  const QImage image =
      memory_image(memory, TimeAxis(1000, 10), bytes, {.theme = theme, .grid_rows = {}});
  EXPECT_EQ(image.pixel(5, 99), theme.storage(StorageClass::parameter).rgb());
  EXPECT_EQ(image.pixel(5, 70), theme.storage(StorageClass::parameter).rgb());
  EXPECT_EQ(image.pixel(5, 69), theme.storage(StorageClass::activation).rgb());
  EXPECT_EQ(image.pixel(5, 20), theme.storage(StorageClass::activation).rgb());
  EXPECT_EQ(qAlpha(image.pixel(5, 19)), 0);
}

TEST_F(MemoryPixels, TheWindowsOwnCurveHasThePeakToo) {
  open(testing::kLlama);
  const MemoryView& curve = memory().view()->memory;
  const QImage image = memory().grab().toImage();
  const QRect at = memory().curve_rect();
  const int x = at.left() + static_cast<int>(memory().axis().x_of(curve.time[curve.peak_at]));
  const int y = at.top() + memory().byte_axis().y_of(curve.peak());
  const QRgb paper = memory().palette().color(QPalette::Base).rgb();
  EXPECT_NE(image.pixel(x, y + 2), paper);
}

// Columns in which the counter's line is drawn, apart from the stack's edge, from straight lines
// and from what is written over the curve, and those of them that have its colour there.
struct LinePixels {
  int drawn = 0;
  int inked = 0;
};

LinePixels pixels_of(const MemoryPlot& plot, const MinMaxPyramid& counter, const QImage& image) {
  const MemoryView& curve = plot.view()->memory;
  const QRect at = plot.curve_rect();
  const TimeAxis axis = plot.axis();
  const MemoryPlot::Labels labels = plot.labels();
  std::vector<QRect> others = plot.lines();
  for (const QRect& box :
       {labels.budget.box, labels.caching.box, labels.planned.box, labels.peak.box}) {
    others.push_back(box);
  }
  const auto y_of = [&](const MinMaxPyramid& of, int x) {
    const MemoryView::Range points = curve.points(axis.time_at(x), axis.time_at(x + 1));
    return plot.byte_axis().y_of(of.extent(points.first, points.last).max);
  };
  const auto is_apart = [&](int x) {
    return std::abs(y_of(counter, x) - y_of(curve.total, x)) > 1;
  };
  LinePixels pixels;
  for (int x = 1; x + 1 < at.width(); ++x) {
    const QPoint point(at.left() + x, at.top() + y_of(counter, x));
    if (!is_apart(x - 1) || !is_apart(x) || !is_apart(x + 1)) continue;
    const bool is_covered = std::any_of(others.begin(), others.end(),
                                        [&](const QRect& box) { return box.contains(point); });
    if (is_covered) continue;
    ++pixels.drawn;
    pixels.inked += image.pixel(point) == Theme::of(plot.palette()).text.rgb() ? 1 : 0;
  }
  return pixels;
}

TEST_F(MemoryPixels, WhatTheAllocatorHoldsIsADashedLineOverTheCurve) {
  open(testing::kLlama);
  const MemoryView& curve = memory().view()->memory;
  ASSERT_GT(curve.reserved.size(), 0U);
  // Straight lines are where it is, in a step that takes nothing from the driver.
  memory().set_reserved(std::nullopt);
  memory().set_budget(curve.peak() / 2, simulator::PeakKind::reserved, false, curve.peak());
  const QImage image = memory().grab().toImage();
  const LinePixels reserved = pixels_of(memory(), curve.reserved, image);
  EXPECT_GT(reserved.drawn, 100) << reserved.inked;
  EXPECT_GT(reserved.inked, reserved.drawn / 3);
  EXPECT_LT(reserved.inked, reserved.drawn);
}

TEST_F(MemoryPixels, ByteAxisRoundsOutwards) {
  const ByteAxis axis{1000, 100};
  EXPECT_EQ(axis.rows(0), 0);
  EXPECT_EQ(axis.rows(1), 1) << "a byte is seen";
  EXPECT_EQ(axis.rows(1000), 100);
  EXPECT_EQ(axis.bytes_at(100), 0);
  EXPECT_EQ(axis.bytes_at(0), 1000);
}

}  // namespace
}  // namespace stowage::gui
