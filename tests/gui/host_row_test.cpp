// The timeline's row of what a plan has on the host.
#include "gui/widgets/theme.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

class HostRow : public testing::Hands {
 protected:
  // Rows of pixels that are painted at a share of the row's width.
  int high(double x) {
    const QRect area = timeline().host_rect();
    const QImage image = timeline().grab(area).toImage();
    const QColor ink = Theme::of(timeline().palette()).storage(StorageClass::optimizer_state);
    const int at = static_cast<int>(image.width() * x);
    int rows = 0;
    for (int y = 0; y < image.height(); ++y) rows += image.pixelColor(at, y) == ink ? 1 : 0;
    return rows;
  }
};

TEST_F(HostRow, IsThereWhereAPlanHasBytesOnTheHostAndGrowsAndShrinksWithThem) {
  open(testing::kLlama);
  EXPECT_TRUE(timeline().host_rect().isEmpty()) << "nothing moves yet";
  const QRect minimap = timeline().minimap_rect();
  type(*window_.findChild<QLineEdit*>("budget"), "36GB");
  key(Qt::Key_Home);
  window_.settle();
  const QRect area = timeline().host_rect();
  ASSERT_FALSE(area.isEmpty());
  EXPECT_FALSE(area.intersects(timeline().link_rect()));
  EXPECT_FALSE(area.intersects(timeline().minimap_rect()));
  EXPECT_TRUE(timeline().rect().contains(timeline().minimap_rect()));
  picture("host_row");
  const report::HostUse& use = timeline().view()->host.use;
  EXPECT_EQ(timeline().view()->host.arena, window_.document().current()->result.host_bytes);
  EXPECT_GT(use.most, timeline().view()->host.arena / 2);
  // Parameters have their homes there all the time, saved tensors are there in the middle.
  EXPECT_GT(high(0.5), high(0.02));
  EXPECT_GT(high(0.5), high(0.99));
  const QString words = timeline().describe(area.center());
  EXPECT_TRUE(words.startsWith("host: ") &&
              words.contains(" that the plan takes there (predicted)"))
      << words.toStdString();
  EXPECT_FALSE(words.contains("budget"));
  state().set_shown(Shown::recorded);
  window_.settle();
  EXPECT_TRUE(timeline().host_rect().isEmpty()) << "of the recorded step nothing";
  EXPECT_EQ(timeline().minimap_rect().height(), minimap.height());
}

TEST_F(HostRow, ABudgetThatIsNearIsALine) {
  open(testing::kLlama);
  type(*window_.findChild<QLineEdit*>("budget"), "36GB");
  const auto has_line = [&] {
    const QImage image = timeline().grab(timeline().host_rect()).toImage();
    for (int y = 0; y < image.height(); ++y) {
      if (image.pixelColor(image.width() / 2, y) == Theme::of(timeline().palette()).budget)
        return true;
    }
    return false;
  };
  EXPECT_FALSE(has_line());
  const Bytes arena = timeline().view()->host.arena;
  for (const auto& [budget, near] : {std::pair(arena * 2, true), std::pair(arena * 20, false)}) {
    window_.document().set_host_budget(budget);
    window_.settle();
    EXPECT_EQ(has_line(), near) << budget;
    EXPECT_TRUE(
        timeline().describe(timeline().host_rect().center()).contains("its budget there is"));
  }
}

}  // namespace
}  // namespace stowage::gui
