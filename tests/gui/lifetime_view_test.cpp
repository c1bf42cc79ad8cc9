// The lifetime of what is selected below the lanes, and its band in the curve.
#include "gui/model/lifetime.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

class LifetimeView : public testing::Hands {
 protected:
  SavedId saved(const std::string& site) {
    const Trace& trace = window_.document().trace()->trace;
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      if (trace.string(trace.saved.site[i]) == site) return SavedId(i);
    }
    return {};
  }
  // Columns of the plot in which the two pictures differ within these rows.
  static std::vector<int> changed(const QImage& a, const QImage& b, const QRect& in) {
    std::vector<int> columns;
    for (int x = in.left(); x <= in.right(); ++x) {
      bool differs = false;
      for (int y = in.top(); y <= in.bottom() && !differs; ++y) {
        differs = a.pixel(x, y) != b.pixel(x, y);
      }
      if (differs) columns.push_back(x);
    }
    return columns;
  }
  int x_of(const PlotView& view, Nanoseconds time) {
    return view.plot().left() + static_cast<int>(view.axis().x_of(time));
  }
};

TEST_F(LifetimeView, TheBandOfASavedTensorIsLitInTheCurveWhileItIsThere) {
  open(testing::kLlama);
  const QImage before = memory().grab().toImage();
  const QImage lanes = timeline().grab().toImage();
  state().select({Kind::saved, saved("layers.4.attn#18").value});
  window_.settle();
  ASSERT_TRUE(memory().lifetime().has_value());
  const Lifetime life = *memory().lifetime();
  EXPECT_EQ(life.bytes, 1'073'741'824);
  ASSERT_EQ(life.there.size(), 1U);
  const std::vector<int> lit = changed(before, memory().grab().toImage(), memory().curve_rect());
  ASSERT_FALSE(lit.empty());
  EXPECT_NEAR(lit.front(), x_of(memory(), life.there[0].begin), 2);
  EXPECT_NEAR(lit.back(), x_of(memory(), life.there[0].end), 2);
  EXPECT_NEAR(static_cast<double>(lit.size()), lit.back() - lit.front() + 1, 2) << "no gap";
  const std::vector<int> row =
      changed(lanes, timeline().grab().toImage(), timeline().lifetime_rect());
  EXPECT_LE(row.front(), x_of(timeline(), life.there[0].begin) + 2);
  EXPECT_GE(row.back(), x_of(timeline(), life.there[0].end) - 2);
  const QString tip = timeline().describe(
      {x_of(timeline(), life.there[0].begin) + 3, timeline().lifetime_rect().center().y()});
  EXPECT_TRUE(tip.contains("activation #") && tip.contains("idle at most")) << tip.toStdString();
  picture("lifetime");
}

TEST_F(LifetimeView, WhatIsAwayIsNotLit) {
  open(testing::kLlama);
  const SavedId row = saved("layers.4.attn#18");
  window_.document().try_policy("torchtune");
  window_.settle();
  const QImage before = memory().grab().toImage();
  state().select({Kind::saved, row.value});
  window_.settle();
  ASSERT_TRUE(memory().lifetime().has_value());
  const Lifetime life = *memory().lifetime();
  ASSERT_GE(life.there.size(), 2U);
  const std::vector<int> lit = changed(before, memory().grab().toImage(), memory().curve_rect());
  const int from = x_of(memory(), life.there[0].end) + 2;
  const int to = x_of(memory(), life.there[1].begin) - 2;
  ASSERT_GT(to - from, 50);
  EXPECT_FALSE(lit.empty());
  for (const int x : lit) EXPECT_FALSE(x > from && x < to) << x;
  picture("lifetime_away");
  // Nothing of it stays when the selection goes.
  key(Qt::Key_Escape);
  window_.settle();
  EXPECT_FALSE(memory().lifetime().has_value());
  EXPECT_EQ(memory().grab().toImage(), before);
}

TEST_F(LifetimeView, DeadBytesAreHatchedToTheirEnd) {
  open(testing::kLlama);
  tab("Alive");
  // The largest storage at the peak: the logits, which are held to the step's end.
  const Trace& trace = window_.document().trace()->trace;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const bool is_made = trace.storages.alloc_event[i].valid();
    if (is_made && trace.storages.bytes[i] > trace.storages.bytes[largest]) largest = i;
  }
  state().select({Kind::storage, static_cast<std::int32_t>(largest)});
  window_.settle();
  ASSERT_TRUE(timeline().lifetime().has_value());
  const Lifetime life = *timeline().lifetime();
  ASSERT_TRUE(life.dead.has_value()) << lifetime_text(life);
  EXPECT_GT(life.dead->duration(), 1'000'000'000);
  // Both colours of the hatch are there, within the bar.
  const QImage lanes = timeline().grab().toImage();
  const int y = timeline().lifetime_rect().center().y();
  int dark = 0;
  int light = 0;
  for (int x = x_of(timeline(), life.dead->begin) + 4; x < timeline().width() - 4; ++x) {
    (qGray(lanes.pixel(x, y)) < 128 ? dark : light) += 1;
  }
  EXPECT_GT(dark, 10);
  EXPECT_GT(light, 3 * dark);
  picture("lifetime_dead");
}

}  // namespace
}  // namespace stowage::gui
