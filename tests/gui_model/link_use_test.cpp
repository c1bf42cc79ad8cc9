#include "gui/model/link_use.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

// The link moves 1 byte a nanosecond: 400 bytes leave from 100 to 500, and come back from 1610 on.
SimulatedPtr one_tensor_away() {
  testing::MicroTrace t;
  t.run(100).begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.run(1000).begin_op("aten::other");
  t.run(500).end_op();
  t.backward();
  t.run(10).begin_op("aten::mm_backward");
  const auto u = t.unpack(s);
  t.run(50).drop(u);
  t.end_op();
  t.free(a);
  PlanState state;
  simulator::SavedRule& rule = state.plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  auto result = simulate(std::make_shared<const TraceData>(t.finish(), "", ""),
                         std::make_shared<const PlanState>(state));
  EXPECT_TRUE(result) << result.error().text();
  return *result;
}

TEST(LinkUse, IsTheBytesOfEachDirectionOverTime) {
  const StepPicturePtr view = planned_view(*one_tensor_away());
  TimeAxis axis(view->end, 200);
  axis.fit();
  const LinkUse use = link_use(*view, axis);
  EXPECT_DOUBLE_EQ(use.most, 1.0) << "400 bytes in 400 ns";
  const auto bytes = [&](const std::vector<double>& pixels) {
    return std::accumulate(pixels.begin(), pixels.end(), 0.0) * axis.ns_per_pixel();
  };
  EXPECT_NEAR(bytes(use.out), 400, 1e-6);
  EXPECT_NEAR(bytes(use.back), 400, 1e-6);
  const auto at = [&](Nanoseconds time) { return static_cast<std::size_t>(axis.x_of(time)); };
  EXPECT_NEAR(use.out[at(300)], 1.0, 1e-9);
  EXPECT_DOUBLE_EQ(use.out[at(700)], 0.0);
  EXPECT_DOUBLE_EQ(use.back[at(300)], 0.0);
  EXPECT_NEAR(use.back[at(1800)], 1.0, 1e-9);
}

TEST(LinkUse, OfAPartOfTheStepHasTheScaleOfAllOfIt) {
  const StepPicturePtr view = planned_view(*one_tensor_away());
  TimeAxis axis(view->end, 100);
  axis.show(600, 1000);
  const LinkUse use = link_use(*view, axis);
  EXPECT_DOUBLE_EQ(use.most, 1.0);
  EXPECT_EQ(std::accumulate(use.out.begin(), use.out.end(), 0.0), 0.0);
  // Its first half is copied, the rest is not.
  axis.show(300, 700);
  const LinkUse half = link_use(*view, axis);
  EXPECT_NEAR(std::accumulate(half.out.begin(), half.out.end(), 0.0) * axis.ns_per_pixel(), 200,
              1e-6);
}

}  // namespace
}  // namespace stowage::gui
