// The timeline's row of what goes over the link.
#include "gui/widgets/theme.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

class LinkRow : public testing::Hands {
 protected:
  // Pixels in a lane's colour above and below the middle of the row.
  struct Halves {
    int above = 0;
    int below = 0;
  };
  Halves painted(LaneKind lane) {
    const QImage image = timeline().grab(timeline().link_rect()).toImage();
    const QColor ink = Theme::of(timeline().palette()).lane(lane);
    Halves halves;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        if (image.pixelColor(x, y) == ink) ++(y < image.height() / 2 ? halves.above : halves.below);
      }
    }
    return halves;
  }
};

TEST_F(LinkRow, HasCopiesOutAboveTheMiddleAndBackBelowIt) {
  open(testing::kLlama);
  const QPoint middle = timeline().link_rect().center();
  EXPECT_EQ(painted(LaneKind::d2h).above + painted(LaneKind::h2d).below, 0) << "nothing moves yet";
  EXPECT_EQ(timeline().describe(middle), "");
  type(*window_.findChild<QLineEdit*>("budget"), "36GB");
  key(Qt::Key_Home);
  window_.settle();
  const Halves out = painted(LaneKind::d2h);
  const Halves back = painted(LaneKind::h2d);
  EXPECT_GT(out.above, 100);
  EXPECT_EQ(out.below, 0);
  EXPECT_GT(back.below, 100);
  EXPECT_EQ(back.above, 0);
  const QString words = timeline().describe(timeline().link_rect().center());
  EXPECT_TRUE(words.contains(" out, ") && words.contains(" back (predicted)"))
      << words.toStdString();
  EXPECT_TRUE(words.contains("the fastest copy of the step has ")) << words.toStdString();
}

}  // namespace
}  // namespace stowage::gui
