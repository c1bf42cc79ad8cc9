// A right click on what is painted, and on a block.
#include <QContextMenuEvent>

#include "gui/widgets/alive_view.h"
#include "gui/widgets/blocks_view.h"
#include "gui/widgets/range_view.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

class SelectionMenu : public testing::Hands {
 protected:
  SelectionMenu() {
    open(testing::kLlama);
    window_.document().try_policy("torchtune");
    window_.settle();
  }
  QMenu* right_click(QWidget& on, const QPoint& at) {
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, on.mapToGlobal(at));
    QApplication::sendEvent(&on, &event);
    return window_.findChild<QMenu*>("selection_menu");
  }
  static QStringList names(const QMenu& menu) {
    QStringList found;
    for (const QAction* action : menu.actions()) found << action->objectName();
    return found;
  }
  void choose_entry(QMenu& menu, const char* name) {
    auto* action = menu.findChild<QAction*>(QLatin1String(name));
    ASSERT_NE(action, nullptr) << name;
    QTest::mouseClick(&menu, Qt::LeftButton, {}, menu.actionGeometry(action).center());
    window_.settle();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  }
};

TEST_F(SelectionMenu, OfACopyOffersWhatCanBeDoneWithIt) {
  const LaneRow& lane = timeline().view()->lane(LaneKind::h2d).rows[0];
  std::size_t longest = 0;
  for (std::size_t i = 0; i < lane.infos.size(); ++i) {
    const auto wide = [&](std::size_t s) { return lane.spans.end(s) - lane.spans.begin(s); };
    if (wide(i) > wide(longest)) longest = i;
  }
  const QRect row = timeline().row_rect(LaneKind::h2d);
  const int x = row.left() + static_cast<int>(timeline().axis().x_of(
                                 (lane.spans.begin(longest) + lane.spans.end(longest)) / 2));
  QMenu* menu = right_click(timeline(), {x, row.center().y()});
  ASSERT_NE(menu, nullptr);
  EXPECT_EQ(state().selection(), (Selection{Kind::transfer, lane.infos[longest].row}));
  const QStringList entries = names(*menu);
  for (const char* name : {"menu_details", "menu_centre", "menu_range", "menu_keep", "menu_alive",
                           "menu_blocks", "go_to_peak"}) {
    EXPECT_TRUE(entries.contains(QLatin1String(name))) << name;
  }
  const Bytes moved = window_.document().current()->result.h2d_bytes;
  choose_entry(*menu, "menu_keep");
  EXPECT_LT(window_.document().current()->result.h2d_bytes, moved);
  EXPECT_EQ(window_.document().undo_stack().undoText().left(4), "Keep");
}

TEST_F(SelectionMenu, OfAnOpShowsWhatRunsWithinIt) {
  const QRect row = timeline().row_rect(LaneKind::layers);
  QMenu* menu = right_click(timeline(), {row.left() + row.width() * 2 / 5, row.center().y()});
  ASSERT_NE(menu, nullptr);
  ASSERT_EQ(state().selection().kind, Kind::layer);
  EXPECT_FALSE(names(*menu).contains("menu_keep")) << "a layer is no copy";
  choose_entry(*menu, "menu_range");
  ASSERT_TRUE(state().range().has_value());
  auto* range = qobject_cast<RangeView*>(window_.view("range"));
  EXPECT_TRUE(in_front(*range));
  EXPECT_GT(range->table().time, 0);
  // On the screen the pointer may have left by now, and the view then says that there is no cursor.
  menu = right_click(timeline(), {row.left() + row.width() / 4, row.center().y()});
  ASSERT_NE(menu, nullptr);
  choose_entry(*menu, "menu_alive");
  auto* alive = qobject_cast<AliveView*>(window_.view("alive"));
  EXPECT_TRUE(in_front(*alive));
  EXPECT_EQ(alive->moment().currentIndex(), 1);
}

TEST_F(SelectionMenu, OfARowIsOfWhatTheRowSpeaksOf) {
  tab("Alive");
  auto* alive = qobject_cast<AliveView*>(window_.view("alive"));
  QTreeWidget& rows = alive->rows();
  ASSERT_GT(rows.topLevelItemCount(), 1);
  QMenu* menu = right_click(*rows.viewport(), rows.visualItemRect(rows.topLevelItem(1)).center());
  ASSERT_NE(menu, nullptr);
  const Selection of_alive = state().selection();
  EXPECT_NE(of_alive.kind, Kind::none);
  choose_entry(*menu, "menu_details");
  EXPECT_TRUE(in_front(*window_.view("details")));
  drag(timeline(), at(timeline(), 0.6, 0.5), at(timeline(), 0.7, 0.5));
  window_.settle();
  auto* range = qobject_cast<RangeView*>(window_.view("range"));
  ASSERT_TRUE(in_front(*range));
  ASSERT_GT(range->rows().topLevelItemCount(), 0);
  menu = right_click(*range->rows().viewport(),
                     range->rows().visualItemRect(range->rows().topLevelItem(0)).center());
  ASSERT_NE(menu, nullptr);
  EXPECT_NE(state().selection().kind, Kind::none);
  EXPECT_NE(state().selection(), of_alive);
  choose_entry(*menu, "menu_details");
  EXPECT_TRUE(in_front(*window_.view("details")));
}

TEST_F(SelectionMenu, OfABlockSelectsIt) {
  tab("Blocks");
  auto* blocks = qobject_cast<BlocksView*>(window_.view("blocks"));
  const auto largest = std::max_element(
      blocks->blocks().begin(), blocks->blocks().end(),
      [](const MemoryBlock& a, const MemoryBlock& b) { return a.bytes < b.bytes; });
  const QPoint at = blocks->strip().place_of(static_cast<int>(largest - blocks->blocks().begin()));
  ASSERT_GE(at.x(), 0);
  QMenu* menu = right_click(blocks->strip(), at);
  ASSERT_NE(menu, nullptr);
  EXPECT_NE(state().selection().kind, Kind::none);
  choose_entry(*menu, "menu_details");
  EXPECT_TRUE(in_front(*window_.view("details")));
}

}  // namespace
}  // namespace stowage::gui
