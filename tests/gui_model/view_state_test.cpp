#include "gui/model/view_state.h"

#include <gtest/gtest.h>

namespace stowage::gui {
namespace {

TEST(ViewState, SaysWhatChangedAndOnlyThat) {
  ViewState state;
  int selections = 0;
  int cursors = 0;
  int ranges = 0;
  int axes = 0;
  QObject::connect(&state, &ViewState::selection_changed, [&] { ++selections; });
  QObject::connect(&state, &ViewState::cursor_changed, [&] { ++cursors; });
  QObject::connect(&state, &ViewState::range_changed, [&] { ++ranges; });
  QObject::connect(&state, &ViewState::axis_changed, [&] { ++axes; });
  for (int i = 0; i < 2; ++i) {
    state.select({Selection::Kind::op, 3});
    state.set_cursor(17);
    state.set_range(TimeRange{90, 20});
    state.set_axis(TimeAxis(500, 100));
  }
  EXPECT_EQ(state.range(), (TimeRange{20, 90}));
  EXPECT_EQ(state.range()->duration(), 70);
  EXPECT_EQ(selections + cursors + ranges + axes, 4);
  state.clear();
  EXPECT_EQ(state.selection().kind, Selection::Kind::none);
  EXPECT_FALSE(state.range().has_value());
  EXPECT_EQ(state.cursor(), 17);
  EXPECT_EQ(selections + ranges, 4);
}

}  // namespace
}  // namespace stowage::gui
