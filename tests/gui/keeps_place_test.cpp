// Selection, cursor and range when the plan is another one: what they were on, or nothing.
#include "gui/model/same_selection.h"
#include "tests/gui/window.h"
#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// Forward saves three times 1000 bytes, backward needs them in the other order 100 ns apart; the
// link moves 1 byte a nanosecond.
Trace three_saved() {
  testing::MicroTrace t;
  std::vector<std::pair<StorageId, SavedId>> saved;
  for (const char* layer : {"a", "b", "c"}) {
    t.begin_layer(layer);
    t.run(2000).begin_op("aten::mm");
    const auto out = t.alloc(1000);
    saved.emplace_back(out, t.pack(out));
    t.end_op();
    t.let_go(out);
    t.end_layer(layer);
  }
  t.backward();
  for (std::size_t i = saved.size(); i-- > 0;) {
    t.run(100).begin_op("aten::mm_backward");
    t.drop(t.unpack(saved[i].second));
    t.end_op();
    t.free(saved[i].first);
  }
  return t.finish();
}

class KeepsPlace : public testing::WindowTest {
 protected:
  KeepsPlace() {
    window_.document().open_trace(three_saved(), "three");
    window_.settle();
  }
  void offload(std::initializer_list<const char*> layers) {
    simulator::Plan plan;
    for (const char* layer : layers) {
      simulator::SavedRule& rule = plan.saved.emplace_back();
      rule.site = std::string(layer) + "#0";
      rule.decision = simulator::Decision::offload;
      rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
    }
    window_.document().set_plan(plan, "another");
    window_.settle();
    ASSERT_TRUE(errors_.empty()) << errors_.front();
  }
  const Simulated& now() { return *window_.document().current(); }
  // The stall of a copy back of what this layer saves.
  std::int32_t stall_of(const std::string& site) {
    for (std::size_t i = 0; i < now().result.stalls.size(); ++i) {
      const auto& tenant = now().schedule.tenant(now().result.stalls[i].stay);
      const Trace& trace = now().step_trace();
      if (trace.string(trace.saved.site[tenant.saved.front().index()]) == site) {
        return static_cast<std::int32_t>(i);
      }
    }
    return -1;
  }
};

TEST_F(KeepsPlace, AStallThatIsStillThereStaysSelectedWithTheCursorOnIt) {
  offload({"a", "b", "c"});
  const std::int32_t was = stall_of("a#0");
  ASSERT_GT(was, 0) << "others come ahead of it";
  state().select({Kind::stall, was});
  const Nanoseconds start = now().result.stalls[static_cast<std::size_t>(was)].start;
  state().set_cursor(start);
  offload({"a"});
  ASSERT_EQ(now().result.stalls.size(), 1U);
  EXPECT_EQ(state().selection(), (Selection{Kind::stall, 0}));
  EXPECT_EQ(state().cursor(), now().result.stalls[0].start);
  EXPECT_LT(*state().cursor(), start);
}

TEST_F(KeepsPlace, AStallThatIsGoneIsNotAnotherOne) {
  offload({"a", "b", "c"});
  const auto was = static_cast<std::size_t>(stall_of("b#0"));
  state().select({Kind::stall, static_cast<std::int32_t>(was)});
  state().set_cursor(now().result.stalls[was].start);
  offload({"a", "c"});
  ASSERT_GT(now().result.stalls.size(), was) << "its row is there, and is another stall";
  ASSERT_EQ(stall_of("b#0"), -1);
  EXPECT_EQ(state().selection().kind, Kind::none);
  EXPECT_FALSE(state().cursor().has_value());
}

TEST_F(KeepsPlace, ACopyOutIsNotTheCopyBack) {
  offload({"a", "b"});
  std::int32_t out = -1;
  for (std::size_t i = 0; i < now().detail.transfers.size(); ++i) {
    const auto& tenant = now().schedule.tenant(now().detail.transfers[i].stay);
    if (now().detail.transfers[i].is_store && tenant.saved.front() == SavedId(1)) {
      out = static_cast<std::int32_t>(i);
    }
  }
  ASSERT_GE(out, 0);
  state().select({Kind::transfer, out});
  offload({"b", "c"});
  ASSERT_EQ(state().selection().kind, Kind::transfer);
  const auto& at = now().detail.transfers[static_cast<std::size_t>(state().selection().row)];
  EXPECT_TRUE(at.is_store);
  EXPECT_EQ(now().schedule.tenant(at.stay).saved.front(), SavedId(1));
}

TEST_F(KeepsPlace, NothingIsBehindTheEndOfAShorterStep) {
  offload({"a", "b", "c"});
  const Nanoseconds end = state().axis().length();
  state().set_cursor(end - 1);
  state().set_range(TimeRange{end / 2, end - 1});
  offload({});
  ASSERT_LT(state().axis().length(), end - 1);
  EXPECT_FALSE(state().cursor().has_value());
  ASSERT_TRUE(state().range().has_value());
  EXPECT_EQ(*state().range(), (TimeRange{end / 2, state().axis().length()}));
  // What lies behind the end as a whole is no range any more.
  offload({"a", "b", "c"});
  state().set_range(TimeRange{end - 2, end - 1});
  offload({});
  EXPECT_FALSE(state().range().has_value());
}

}  // namespace
}  // namespace stowage::gui
