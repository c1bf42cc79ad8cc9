#include "gui/model/plan_tree.h"

#include <gtest/gtest.h>

#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

using stowage::testing::MicroTrace;

// block: block.a saves x (100 B) twice and a view of a weight; the weight is the layer's.
TracePtr made() {
  MicroTrace t;
  const auto weight = t.existing(4000);
  t.set_layer(weight, "block.a");
  t.begin_layer("block");
  t.begin_layer("block.a");
  const auto x = t.alloc(100);
  const auto first = t.pack(x);
  const auto again = t.pack(x);
  const auto of_weight = t.pack(weight);
  t.let_go(x);
  t.end_layer("block.a");
  const auto y = t.alloc(40);
  const auto third = t.pack(y);
  t.let_go(y);
  t.end_layer("block");
  t.backward();
  for (const SavedId saved : {third, of_weight, again, first}) t.unpack(saved);
  t.free(y);
  t.free(x);
  return std::make_shared<const TraceData>(t.finish(), "made", "");
}

std::int32_t layer_row(const PlanTree& tree, const std::string& name) {
  for (std::size_t i = 0; i < tree.rows.size(); ++i) {
    const PlanRow& row = tree.rows[i];
    if (row.kind == PlanRowKind::layer &&
        tree.trace().string(tree.trace().layers.name[row.layer.index()]) == name) {
      return static_cast<std::int32_t>(i);
    }
  }
  return -1;
}

TEST(PlanTree, ALayersBytesCountEachStorageOnceAndNoneThatIsOlderThanTheStep) {
  const PlanTree tree(made());
  const std::int32_t inner = layer_row(tree, "block.a");
  ASSERT_GE(inner, 0);
  EXPECT_EQ(tree.rows[static_cast<std::size_t>(inner)].bytes, 100);
  EXPECT_FALSE(tree.can_move(SavedId(2)));
  EXPECT_TRUE(tree.can_move(SavedId(3)));
}

TEST(PlanTree, ADecisionAboutALayerLeavesOutWhatCannotMove) {
  const PlanTree tree(made());
  const std::int32_t inner = layer_row(tree, "block.a");
  EXPECT_EQ(tree.targets_of({inner}, PlanRowKind::saved).saved,
            (std::vector<SavedId>{SavedId(0), SavedId(1)}));
  EXPECT_TRUE(tree.targets_of({inner}, PlanRowKind::saved).parameters.empty());
  EXPECT_EQ(tree.targets_of({inner}, PlanRowKind::parameters).parameters.size(), 1U);
  // Itself, it may be asked for.
  EXPECT_EQ(tree.targets_of({tree.row_of_saved[2]}, PlanRowKind::saved).saved,
            (std::vector<SavedId>{SavedId(2)}));
  // A row and the layer that it is in: once.
  EXPECT_EQ(tree.targets_of({inner, tree.row_of_saved[0]}, PlanRowKind::saved).saved.size(), 2U);
}

}  // namespace
}  // namespace stowage::gui
