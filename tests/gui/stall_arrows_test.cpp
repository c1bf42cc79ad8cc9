// From the copy that compute waits for to the stall, and keeping on the device what is waited for.
#include "gui/widgets/details_view.h"
#include "tests/gui/hands.h"
#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// Forward saves 5000 bytes in each of two layers, backward needs them 1000 ns apart; the link moves
// 1 byte a nanosecond.
Trace two_waits() {
  testing::MicroTrace t;
  std::vector<std::pair<StorageId, SavedId>> saved;
  for (const char* layer : {"a", "b"}) {
    t.begin_layer(layer);
    t.run(8000).begin_op("aten::mm");
    const auto out = t.alloc(5000);
    saved.emplace_back(out, t.pack(out));
    t.end_op();
    t.let_go(out);
    t.end_layer(layer);
  }
  t.run(8000).backward();
  for (std::size_t i = saved.size(); i-- > 0;) {
    t.run(1000).begin_op("aten::mm_backward");
    t.drop(t.unpack(saved[i].second));
    t.end_op();
    t.free(saved[i].first);
  }
  return t.finish();
}

class StallArrows : public testing::Hands {
 protected:
  StallArrows() {
    window_.document().open_trace(two_waits(), "two");
    window_.settle();
    simulator::Plan plan;
    simulator::SavedRule& rule = plan.saved.emplace_back();
    rule.site = "*";
    rule.decision = simulator::Decision::offload;
    rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
    window_.document().set_plan(plan, "all leaves");
    window_.settle();
  }
  const Simulated& now() { return *window_.document().current(); }
  DetailsView& details() { return *qobject_cast<DetailsView*>(window_.view("details")); }
};

TEST_F(StallArrows, GoFromTheEndOfTheCopyToTheStallThatWaitsForIt) {
  ASSERT_EQ(now().result.stalls.size(), 2U);
  const auto arrows = timeline().wait_arrows();
  ASSERT_EQ(arrows.size(), 2U) << "both are wide enough";
  const QRect copies = timeline().row_rect(LaneKind::h2d);
  const QRect stalls = timeline().row_rect(LaneKind::stalls);
  for (const TimelinePlot::WaitArrow& arrow : arrows) {
    EXPECT_FALSE(arrow.is_selected);
    EXPECT_TRUE(copies.contains(arrow.from));
    EXPECT_TRUE(stalls.contains(arrow.to));
    const simulator::Stall& stall = now().result.stalls[static_cast<std::size_t>(arrow.stall)];
    EXPECT_NEAR(arrow.to.x(),
                timeline().plot().left() + timeline().axis().x_of(stall.start + stall.duration), 1);
  }
  // That of the selected stall is painted as such, the other one as before.
  const QImage before = timeline().grab().toImage();
  state().select({Kind::stall, arrows[0].stall});
  window_.settle();
  EXPECT_TRUE(timeline().wait_arrows()[0].is_selected);
  EXPECT_FALSE(timeline().wait_arrows()[1].is_selected);
  const QImage after = timeline().grab().toImage();
  const auto between = [](const TimelinePlot::WaitArrow& arrow) {
    return QPoint(arrow.from.x(), (arrow.from.y() + arrow.to.y()) / 2);
  };
  EXPECT_NE(before.pixel(between(arrows[0])), after.pixel(between(arrows[0])));
  EXPECT_EQ(before.pixel(between(arrows[1])), after.pixel(between(arrows[1])));
  // So is that of the copy.
  const std::int32_t copy = timeline().view()->waits.waits[1].copy;
  state().select({Kind::transfer, copy});
  EXPECT_TRUE(timeline().wait_arrows()[1].is_selected);
  picture("stall_arrows");
}

TEST_F(StallArrows, KeepThisTakesTheCopyAndTheStallAway) {
  menu({"View", "Go to the longest stall"});
  ASSERT_EQ(state().selection().kind, Kind::stall);
  ASSERT_TRUE(details().keep_button().isVisible());
  EXPECT_EQ(details().keep_button().text(), "Keep b#0 on the device");
  picture("stall_keep");
  const Nanoseconds waited = now().result.stall_ns;
  QTest::mouseClick(&details().keep_button(), Qt::LeftButton);
  window_.settle();
  EXPECT_EQ(now().result.stalls.size(), 1U);
  EXPECT_LT(now().result.stall_ns, waited);
  EXPECT_EQ(state().selection(), (Selection{Kind::saved, 1}));
  EXPECT_FALSE(details().keep_button().isVisible());
  window_.action("undo")->trigger();
  window_.settle();
  EXPECT_EQ(now().result.stalls.size(), 2U);
}

}  // namespace
}  // namespace stowage::gui
