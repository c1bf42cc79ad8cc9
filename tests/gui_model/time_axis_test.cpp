#include "gui/model/time_axis.h"

#include <gtest/gtest.h>

#include <random>

namespace stowage::gui {
namespace {

TEST(TimeAxis, MapsTheWholeStepToTheWidth) {
  const TimeAxis axis(2'000'000, 1000);
  EXPECT_EQ(axis.x_of(0), 0);
  EXPECT_EQ(axis.x_of(1'000'000), 500);
  EXPECT_EQ(axis.time_at(250), 500'000);
  EXPECT_TRUE(axis.fits());
}

TEST(TimeAxis, ZoomKeepsWhatIsUnderThePointer) {
  TimeAxis axis(1'000'000'000, 1000);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> x_of(0, 1000);
  for (int i = 0; i < 40; ++i) {
    axis.fit();
    const double x = x_of(random);
    const double time = axis.time_at(x);
    for (int step = 0; step < 12; ++step) axis.zoom(1.5, x);
    EXPECT_NEAR(axis.time_at(x), time, axis.ns_per_pixel() * 0.01);
    EXPECT_NEAR(axis.span(), 1e9 / std::pow(1.5, 12), 1);
  }
}

TEST(TimeAxis, StaysWithinTheStep) {
  TimeAxis axis(1'000'000, 500);
  axis.zoom(0.1, 100);
  EXPECT_TRUE(axis.fits());
  axis.zoom(4, 0);
  axis.pan(-1000);
  EXPECT_EQ(axis.begin(), 0);
  axis.pan(1e9);
  EXPECT_EQ(axis.end(), 1'000'000);
  for (int i = 0; i < 200; ++i) axis.zoom(2, 250);
  EXPECT_EQ(axis.span(), TimeAxis::kLeastSpan);
  EXPECT_GE(axis.begin(), 0);
  axis.fit();
  EXPECT_TRUE(axis.fits());
  axis.zoom(-1, 3);  // no factor
  EXPECT_TRUE(axis.fits());
}

TEST(TimeAxis, PanMovesByPixels) {
  TimeAxis axis(1'000'000, 1000);
  axis.show(100'000, 200'000);
  axis.pan(10);
  EXPECT_DOUBLE_EQ(axis.begin(), 101'000);
  axis.centre_on(500'000);
  EXPECT_DOUBLE_EQ(axis.x_of(500'000), 500);
  axis.show(300, 300);
  EXPECT_EQ(axis.span(), TimeAxis::kLeastSpan);
}

TEST(TimeAxis, KeepsThePartSeenWhenTheStepGrows) {
  TimeAxis axis(1'000'000, 1000);
  axis.show(100'000, 300'000);
  axis.set_length(2'000'000);
  EXPECT_DOUBLE_EQ(axis.begin(), 100'000);
  EXPECT_DOUBLE_EQ(axis.end(), 300'000);
  axis.fit();
  axis.set_length(5'000'000);
  EXPECT_TRUE(axis.fits());
  axis.show(4'000'000, 5'000'000);
  axis.set_length(1'000'000);
  EXPECT_EQ(axis.end(), 1'000'000);
}

TEST(TimeAxis, AStepWithoutTimeIsStillAnAxis) {
  const TimeAxis axis(0, 0);
  EXPECT_GT(axis.span(), 0);
  EXPECT_GT(axis.width(), 0);
  EXPECT_FALSE(axis.ticks().empty());
}

TEST(TimeAxis, TicksAreRoundTimesWithTheirUnit) {
  const TimeAxis axis(2'570'000'000, 1000);
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks(110)) {
    if (tick.major) labels.push_back(tick.label);
  }
  EXPECT_EQ(labels,
            (std::vector<std::string>{"0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s"}));
}

TEST(TimeAxis, TicksNeverCrowdAndAlwaysDescribeTheirPlace) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> exponent(1.5, 12);
  for (int i = 0; i < 300; ++i) {
    TimeAxis axis(static_cast<Nanoseconds>(std::pow(10.0, exponent(random))), 1200);
    axis.zoom(std::pow(10.0, exponent(random) / 4), 700);
    double last = -1e9;
    std::string last_label;
    for (const Tick& tick : axis.ticks(110)) {
      EXPECT_NEAR(tick.x, axis.x_of(tick.time), 1e-9);
      if (!tick.major) continue;
      EXPECT_GE(tick.x - last, 109.9);
      EXPECT_NE(tick.label, last_label);
      last = tick.x;
      last_label = tick.label;
    }
    EXPECT_GT(last, -1e9) << "no label at all";
  }
}

}  // namespace
}  // namespace stowage::gui
