// What is written over the memory curve: no label on a line, none on another one.
#include "gui/widgets/label_places.h"
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

TEST(LabelPlaces, TheNearestRowAboveIsTakenFirstAndAnotherLeftEndBeforeAnotherRow) {
  LabelPlaces places(QRect(0, 0, 100, 50));
  places.take(QRect(0, 20, 100, 1));
  const QSize size(40, 10);
  EXPECT_EQ(places.put(size, {5, 60}, 12), QRect(5, 10, 40, 10)) << "moved up, off the line";
  EXPECT_EQ(places.put(size, {5, 60}, 12), QRect(60, 10, 40, 10)) << "beside the first one";
  EXPECT_EQ(places.put(size, {5}, 12), QRect(5, 21, 40, 10)) << "below the line is nearer";
  EXPECT_EQ(places.put(size, {5}, 12), QRect(5, 0, 40, 10)) << "than above the first one";
  EXPECT_EQ(places.put(size, {90}, 45), QRect(60, 40, 40, 10)) << "not beyond the area";
}

TEST(LabelPlaces, WhereNothingIsFreeTheLabelIsWhereItWasWished) {
  LabelPlaces places(QRect(0, 0, 100, 50));
  places.take(QRect(0, 0, 100, 50));
  EXPECT_EQ(places.put({40, 10}, {5}, 12), QRect(5, 12, 40, 10));
}

class MemoryLabels : public testing::WindowTest {
 protected:
  // Where a label is wrong, or nothing.
  std::string wrong() {
    const MemoryPlot::Labels labels = memory().labels();
    const std::vector<MemoryPlot::Label> all{labels.budget, labels.caching, labels.planned,
                                             labels.peak};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const QString& text = all[i].text;
      if (text.isEmpty()) return "a label is missing";
      if (!memory().curve_rect().contains(all[i].box)) return (text + " is outside").toStdString();
      for (const QRect& line : memory().lines()) {
        if (line.intersects(all[i].box)) return (text + " lies on a line").toStdString();
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (!all[k].box.intersects(all[i].box)) continue;
        return (text + " lies on " + all[k].text).toStdString();
      }
    }
    return {};
  }
};

// Planned memory is 8.67 GB there, the caching allocator reserves 8.89 GB, the peak is 8.65 GB.
TEST_F(MemoryLabels, LieOnNoLineAndOnNoOtherLabelWhereverTheBudgetIs) {
  open(testing::kVit);
  EXPECT_EQ(memory().lines().size(), 3U);
  for (const QSize& size : {QSize(1280, 720), QSize(1280, 1000), QSize(1920, 1080)}) {
    window_.resize(size);
    QApplication::processEvents();
    memory().set_budget(std::nullopt, simulator::PeakKind::reserved, true, 8'670'000'000);
    EXPECT_EQ(wrong(), "") << size.width() << " wide, without a budget";
    for (Bytes budget = 4'000'000'000; budget < 12'000'000'000; budget += 50'000'000) {
      memory().set_budget(budget, simulator::PeakKind::reserved, true, 8'670'000'000);
      ASSERT_EQ(wrong(), "") << size.width() << " wide, a budget of " << budget;
    }
  }
}

class MemoryGhost : public testing::WindowTest {
 protected:
  void offload_all() {
    std::vector<SavedId> all;
    const std::size_t count = window_.document().trace()->trace.saved.size();
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(i);
    ASSERT_TRUE(window_.document().set_decision(all, simulator::Decision::offload));
    window_.settle();
  }
};

TEST_F(MemoryGhost, TheScaleStaysAndTheCurveBeforeTheEditIsDrawn) {
  open(testing::kLlama);
  EXPECT_EQ(memory().ghost(), nullptr);
  const Bytes top = memory().byte_axis().top;
  const StepPicturePtr before = memory().view();
  offload_all();
  EXPECT_LT(memory().view()->memory.peak(), before->memory.peak() * 2 / 3);
  EXPECT_EQ(memory().byte_axis().top, top);
  ASSERT_EQ(memory().ghost(), before);
  // Some of its line is near its peak, where there is paper without it: the line has gaps.
  const QRect curve = memory().curve_rect();
  const int y = curve.top() + memory().byte_axis().y_of(before->memory.peak());
  const QImage with = memory().grab().toImage();
  memory().set_ghost(nullptr);
  const QImage without = memory().grab().toImage();
  int drawn = 0;
  for (int x = curve.left(); x < curve.right(); ++x) {
    for (int at = y; at < y + 10; ++at) drawn += with.pixel(x, at) != without.pixel(x, at) ? 1 : 0;
  }
  EXPECT_GT(drawn, 0);
  // Undo shows what is undone; a budget is no edit of the curve; another file has none.
  window_.document().undo_stack().undo();
  window_.settle();
  ASSERT_NE(memory().ghost(), nullptr);
  EXPECT_LT(memory().ghost()->memory.peak(), before->memory.peak() * 2 / 3);
  const StepPicturePtr undone = memory().ghost();
  ASSERT_TRUE(window_.document().set_budget(60'000'000'000, simulator::PeakKind::requested));
  window_.settle();
  EXPECT_EQ(memory().ghost(), undone);
  // The recorded curve has another clock.
  window_.state().set_shown(Shown::recorded);
  window_.settle();
  EXPECT_EQ(memory().ghost(), nullptr);
  window_.state().set_shown(Shown::automatic);
  open(testing::kVit);
  EXPECT_EQ(memory().ghost(), nullptr);
}

}  // namespace
}  // namespace stowage::gui
