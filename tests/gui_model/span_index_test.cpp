#include "gui/model/span_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stowage::gui {
namespace {

struct Spans {
  std::vector<Nanoseconds> begin;
  std::vector<Nanoseconds> end;
};

Spans random_spans(std::mt19937& random, int count) {
  std::uniform_int_distribution<Nanoseconds> gap(0, 50);
  std::uniform_int_distribution<int> kind(0, 9);
  Spans spans;
  Nanoseconds now = 0;
  for (int i = 0; i < count; ++i) {
    now += gap(random);
    spans.begin.push_back(now);
    // Mostly short, now and then long, some without any length.
    now += kind(random) == 0 ? gap(random) * 100 : gap(random);
    spans.end.push_back(now);
  }
  return spans;
}

TEST(SpanIndex, EverySpanInViewIsInExactlyOneRun) {
  std::mt19937 random(3);
  std::vector<SpanRun> runs;
  for (int round = 0; round < 60; ++round) {
    const Spans spans = random_spans(random, 2000);
    const SpanIndex index(spans.begin, spans.end);
    TimeAxis axis(spans.end.back() + 100, 300);
    std::uniform_real_distribution<double> place(0, static_cast<double>(spans.end.back()));
    axis.show(place(random), place(random));
    index.runs(axis, runs);
    std::vector<int> times(spans.begin.size(), 0);
    double left = -1;
    for (const SpanRun& run : runs) {
      EXPECT_GE(run.x0, left);
      EXPECT_LE(run.x0, run.x1);
      EXPECT_LE(run.x1, axis.width());
      left = run.x0;
      Nanoseconds work = 0;
      for (std::uint32_t i = 0; i < run.count; ++i) {
        ++times[run.first + i];
        work += spans.end[run.first + i] - spans.begin[run.first + i];
      }
      if (run.folded()) {
        EXPECT_DOUBLE_EQ(run.busy, std::min(1.0, static_cast<double>(work) / axis.ns_per_pixel()));
      }
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      const bool in_view = static_cast<double>(spans.end[i]) >= axis.begin() &&
                           static_cast<double>(spans.begin[i]) < axis.end();
      EXPECT_EQ(times[i], in_view ? 1 : 0) << i;
    }
  }
}

TEST(SpanIndex, ASpanWiderThanAPixelIsARunOfItsOwn) {
  // 1 ns a pixel: 0-10 alone, three that share pixel 20, one that begins there and goes on to 25.
  const SpanIndex index({0, 20, 20, 20, 20}, {10, 20, 20, 20, 25});
  TimeAxis axis(100, 100);
  std::vector<SpanRun> runs;
  index.runs(axis, runs);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].x0, 0);
  EXPECT_EQ(runs[0].x1, 10);
  EXPECT_EQ(runs[1].count, 3U);
  EXPECT_EQ(runs[1].x0, 20);
  EXPECT_EQ(runs[1].x1, 21);
  EXPECT_EQ(runs[2].first, 4U);
  EXPECT_EQ(runs[2].x1, 25);
}

TEST(SpanIndex, AFoldedRunSaysHowBusyItIs) {
  // 100 ns a pixel; the first pixel holds 30 + 20 ns of work.
  const SpanIndex index({0, 40, 100}, {30, 60, 200});
  TimeAxis axis(1000, 10);
  std::vector<SpanRun> runs;
  index.runs(axis, runs);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_TRUE(runs[0].folded());
  EXPECT_DOUBLE_EQ(runs[0].busy, 0.5);
}

TEST(SpanIndex, RunsAreAsFewAsThePixelsWhateverTheSpans) {
  std::vector<Nanoseconds> begin(1'000'000);
  for (std::size_t i = 0; i < begin.size(); ++i) begin[i] = static_cast<Nanoseconds>(i) * 10;
  std::vector<Nanoseconds> end = begin;
  for (Nanoseconds& e : end) e += 7;
  const SpanIndex index(begin, end);
  const TimeAxis axis(10'000'000, 1920);
  std::vector<SpanRun> runs;
  index.runs(axis, runs);
  EXPECT_LE(runs.size(), 2 * 1920U);
  EXPECT_GE(runs.size(), 1920U);
}

TEST(SpanIndex, FindsTheSpanAtATimeOrTheNearestOne) {
  const SpanIndex index({10, 30, 60}, {20, 50, 70});
  EXPECT_EQ(index.at(15), 0);
  EXPECT_EQ(index.at(20), -1);
  EXPECT_EQ(index.at(25), -1);
  EXPECT_EQ(index.at(22, 3), 0);
  EXPECT_EQ(index.at(29, 3), 1);
  EXPECT_EQ(index.at(0, 5), -1);
  EXPECT_EQ(index.at(1000, 5), -1);
  EXPECT_EQ(index.at(72, 5), 2);
  EXPECT_EQ(SpanIndex().at(5, 100), -1);
}

TEST(SpanIndex, CoveredTimeIsThatOfEachNanosecond) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const Spans spans = random_spans(random, 40);
    const SpanIndex index(spans.begin, spans.end);
    std::uniform_int_distribution<Nanoseconds> place(0, spans.end.back() + 20);
    for (int i = 0; i < 30; ++i) {
      const Nanoseconds a = place(random);
      const Nanoseconds b = place(random);
      Nanoseconds expected = 0;
      for (std::size_t s = 0; s < spans.begin.size(); ++s) {
        expected +=
            std::max<Nanoseconds>(0, std::min(b, spans.end[s]) - std::max(a, spans.begin[s]));
      }
      EXPECT_EQ(index.covered(a, b), a < b ? expected : 0);
    }
  }
}

TEST(SpanRows, OverlappingSpansComeIntoDifferentRows) {
  const std::vector<Nanoseconds> begin{0, 5, 10, 12, 30};
  const std::vector<Nanoseconds> end{20, 10, 30, 14, 40};
  EXPECT_EQ(rows_of(begin, end), (std::vector<std::uint8_t>{0, 1, 1, 2, 0}));
  EXPECT_EQ(rows_of(begin, end, 2), (std::vector<std::uint8_t>{0, 1, 1, 1, 0}));
}

}  // namespace
}  // namespace stowage::gui
