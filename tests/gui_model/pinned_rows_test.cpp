// Rows of the plan that are pinned: what is pinned, undone, and left by a search.
#include "gui/model/pinned_rows.h"

#include <gtest/gtest.h>

#include <QString>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/pareto_search.h"
#include "gui/model/plan_document.h"
#include "planner/budget.h"
#include "tests/gui_model/spin.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

using simulator::Decision;

class PinnedRowsTest : public ::testing::Test {
 protected:
  PinnedRowsTest() {
    QObject::connect(&document_, &PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
    QObject::connect(&document_, &PlanDocument::pinned, [this] { ++told_; });
  }
  void settle() {
    ASSERT_TRUE(stowage::testing::spin_until([this] {
      return !document_.loading().busy() && !document_.simulating().busy() &&
             !document_.searching().busy();
    }));
  }
  void open_sample(const char* name) {
    document_.open(QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/%1.trace.json.gz")
                       .arg(QLatin1String(name)));
    settle();
  }
  const Trace& trace() { return document_.trace()->trace; }
  const PlanDecisions& decisions() { return *document_.current()->decisions; }
  SavedId row(const std::string& site) {
    for (std::size_t i = 0; i < trace().saved.size(); ++i) {
      if (trace().string(trace().saved.site[i]) == site) return SavedId(i);
    }
    ADD_FAILURE() << site;
    return {};
  }
  void find_plan(int percent) {
    planner::PlanRequest request;
    request.placement = document_.state()->plan.placement;
    request.budget_on = simulator::PeakKind::active;
    request.budget =
        *planner::resident_peak(document_.trace()->index, request.budget_on, request.placement) *
        percent / 100;
    document_.find_plan(std::move(request));
    settle();
  }

  std::vector<std::string> errors_;
  int told_ = 0;
  PlanDocument document_;
};

TEST_F(PinnedRowsTest, ASearchLeavesThemAndDecidesTheRest) {
  document_.open_trace(stowage::testing::small_trace(4), QStringLiteral("made.trace.json"));
  settle();
  find_plan(80);
  ASSERT_TRUE(document_.outcome()->feasible());
  EXPECT_EQ(document_.outcome()->pinned, 0);
  const SavedId first = row("layers.0#0");
  ASSERT_TRUE(decisions().saved_is(first, Decision::offload));
  ASSERT_TRUE(document_.set_decision({first}, Decision::keep));
  settle();
  PinnedRows pins;
  pins.saved = {first};
  EXPECT_TRUE(document_.set_pinned_rows(pins));
  EXPECT_EQ(told_, 1);
  EXPECT_FALSE(document_.set_pinned_rows(pins)) << "they are so";
  find_plan(80);
  EXPECT_EQ(document_.outcome()->pinned, 1);
  ASSERT_TRUE(document_.outcome()->feasible());
  EXPECT_TRUE(decisions().saved_is(first, Decision::keep));
  EXPECT_TRUE(std::any_of(decisions().saved.begin(), decisions().saved.end(),
                          [](const auto& each) { return each.decision == Decision::offload; }));
  EXPECT_EQ(document_.pinned_rows(), pins) << "the plan that was found has them";
  // One step back is the plan before, with its pins; another one is without.
  document_.undo_stack().undo();
  EXPECT_EQ(document_.pinned_rows(), pins);
  document_.undo_stack().undo();
  EXPECT_TRUE(document_.pinned_rows().empty());
  document_.undo_stack().redo();
  EXPECT_EQ(document_.pinned_rows(), pins);
  document_.close();
  EXPECT_TRUE(document_.pinned_rows().empty());
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

TEST_F(PinnedRowsTest, MemoryAgainstTimeKeepsThem) {
  document_.open_trace(stowage::testing::small_trace(4), QStringLiteral("made.trace.json"));
  settle();
  const SavedId first = row("layers.0#0");
  ParetoSearch search(document_);
  // In how many of its plans the tensor stays.
  const auto kept = [&](const std::string& names_end_with) {
    search.start(6);
    EXPECT_TRUE(stowage::testing::spin_until([&] { return !search.busy(); }));
    int planned = 0;
    int keeping = 0;
    for (std::size_t i = 0; i < search.points().size(); ++i) {
      const ParetoPoint& point = search.points()[i];
      if (point.kind != ParetoPoint::Kind::planned) continue;
      EXPECT_TRUE(point.name.ends_with(names_end_with)) << point.name;
      EXPECT_TRUE(search.load(i));
      settle();
      ++planned;
      keeping += decisions().saved_is(first, Decision::keep) ? 1 : 0;
      document_.undo_stack().undo();
      settle();
    }
    return std::pair(keeping, planned);
  };
  const auto without = kept("B");
  EXPECT_LT(without.first, without.second) << "a budget needs it away";
  ASSERT_TRUE(decisions().saved_is(first, Decision::keep));
  PinnedRows pins;
  pins.saved = {first};
  document_.set_pinned_rows(pins);
  const auto with = kept(", 1 pinned");
  EXPECT_GT(with.second, 0);
  EXPECT_EQ(with.first, with.second);
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

TEST_F(PinnedRowsTest, PinningReplaysNothing) {
  document_.open_trace(stowage::testing::small_trace(2), QStringLiteral("made.trace.json"));
  settle();
  const SimulatedPtr before = document_.current();
  PinnedRows pins;
  pins.saved = {row("layers.0#0")};
  document_.set_pinned_rows(pins);
  EXPECT_FALSE(document_.simulating().busy());
  EXPECT_EQ(document_.current(), before);
  EXPECT_EQ(document_.undo_stack().undoText(), "Pin 1 decision");
}

TEST_F(PinnedRowsTest, WhatCannotBeKeptIsToldAndThePlanStays) {
  document_.open_trace(stowage::testing::small_trace(4), QStringLiteral("made.trace.json"));
  settle();
  document_.try_policy("save_on_cpu");  // copies on the compute stream
  settle();
  PinnedRows pins;
  pins.saved = {row("layers.0#0")};
  document_.set_pinned_rows(pins);
  const PlanStatePtr before = document_.state();
  find_plan(80);
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(errors_.front(),
            "what is pinned cannot be kept: a search copies on the lanes alone (unpin it)");
  EXPECT_EQ(document_.state(), before);
}

// Parameters that stream, layers and ops that run again: each as it is when it is pinned.
TEST_F(PinnedRowsTest, RulesAreOfWhatIsDecidedByThen) {
  open_sample("gpt2-bf16-h200");
  const PlanTree tree(document_.trace());
  LayerId layer;
  for (const PlanRow& each : tree.rows) {
    const bool is_layer = each.kind == PlanRowKind::layer;
    if (is_layer && trace().string(trace().layers.name[each.layer.index()]) == "layers.3") {
      layer = each.layer;
    }
  }
  ASSERT_TRUE(layer.valid());
  ASSERT_TRUE(document_.set_recompute({layer}, {}));
  settle();
  ASSERT_TRUE(document_.set_streaming({tree.streaming.front()}, true));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  PinnedRows pins;
  for (const SavedId saved : saved_in(trace(), layer)) pins.saved.insert(saved);
  pins.saved.insert(row("layers.0.mlp#8"));
  pins.parameters = {tree.streaming.front().layer, tree.streaming.back().layer};
  const simulator::Plan rules = rules_of(*document_.trace(), decisions(), pins);
  ASSERT_EQ(rules.recompute.size(), 1U);
  EXPECT_EQ(rules.recompute[0].segment, "layers.3");
  ASSERT_EQ(rules.saved.size(), 1U);
  EXPECT_EQ(rules.saved[0].site, "layers.0.mlp#8");
  EXPECT_EQ(rules.saved[0].decision, Decision::keep);
  ASSERT_TRUE(rules.parameters.has_value());
  EXPECT_EQ(rules.parameters->shards.size(), 2U);
  EXPECT_EQ(rules.parameters->stream.of(0), simulator::StreamMode::forward);
  EXPECT_EQ(rules.parameters->stream.of(1), simulator::StreamMode::off);
  document_.set_pinned_rows(pins);
  find_plan(80);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  ASSERT_TRUE(document_.outcome()->feasible());
  for (const SavedId saved : saved_in(trace(), layer)) {
    EXPECT_GE(decisions().segment(saved), 0) << saved.value;
  }
  EXPECT_TRUE(decisions().saved_is(row("layers.0.mlp#8"), Decision::keep));
  EXPECT_TRUE(streams(decisions(), tree.streaming.front()));
  EXPECT_FALSE(streams(decisions(), tree.streaming.back()));
}

}  // namespace
}  // namespace stowage::gui
