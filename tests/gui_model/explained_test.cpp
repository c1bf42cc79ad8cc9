#include "gui/model/explained.h"

#include <gtest/gtest.h>

#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

// Both layers save `shared`, made ahead of them at 10, and each one of its own.
TracePtr two_layers() {
  testing::MicroTrace t;
  t.run(10).begin_op("aten::angles");
  const auto shared = t.alloc(100);
  t.read(shared);
  t.end_op();
  std::vector<std::pair<StorageId, SavedId>> saved;
  std::vector<SavedId> again;
  for (const char* layer : {"layers.0", "layers.1"}) {
    t.begin_layer(layer);
    t.run(100).begin_op("aten::mm");
    const auto own = t.alloc(400);
    saved.emplace_back(own, t.pack(own));
    again.push_back(t.pack(shared));
    t.end_op();
    t.let_go(own);
    t.end_layer(layer);
  }
  t.let_go(shared);
  t.backward();
  for (std::size_t i = saved.size(); i-- > 0;) {
    t.run(1000).begin_op("aten::mm_backward");
    t.drop(t.unpack(saved[i].second));
    t.drop(t.unpack(again[i]));
    t.end_op();
    t.free(saved[i].first);
  }
  t.free(shared);
  return std::make_shared<const TraceData>(t.finish(), "", "");
}

TEST(Explained, UsesOfALayerAreThoseOfWhatNoOtherLayerSaves) {
  const auto simulated = simulate(two_layers(), std::make_shared<const PlanState>());
  ASSERT_TRUE(simulated) << simulated.error().text();
  const Explained explained(*simulated);
  const PlanTree& tree = *explained.tree;
  const auto figures = [&](std::int32_t row) {
    return explained.figures[static_cast<std::size_t>(row)];
  };
  const auto layer = [&](SavedId saved) {
    return figures(tree.rows[static_cast<std::size_t>(tree.row_of_saved[saved.index()])].parent);
  };
  // Saved: own 0, shared, own 1, shared.
  const RowFigures first = layer(SavedId(0));
  const RowFigures second = layer(SavedId(2));
  const RowFigures shared = figures(tree.row_of_saved[1]);
  EXPECT_EQ(first.first, figures(tree.row_of_saved[0]).first);
  EXPECT_EQ(first.last, figures(tree.row_of_saved[0]).last);
  EXPECT_EQ(second.first, figures(tree.row_of_saved[2]).first);
  EXPECT_EQ(second.last, figures(tree.row_of_saved[2]).last);
  EXPECT_LT(first.first, second.first);
  EXPECT_GT(first.last, second.last) << "backward goes the other way";
  EXPECT_LT(shared.first, first.first) << "a row of its own shows it";
  EXPECT_EQ(tree.home_of_storages().front(), -1);
}

TEST(Explained, ALayerHasTheUsesOfWhatLayersInsideItShare) {
  testing::MicroTrace t;
  t.begin_layer("block");
  std::vector<SavedId> saved;
  StorageId shared;
  for (const char* layer : {"block.a", "block.b"}) {
    t.begin_layer(layer);
    t.run(100).begin_op("aten::mm");
    if (saved.empty()) shared = t.alloc(400);
    saved.push_back(t.pack(shared));
    t.end_op();
    t.end_layer(layer);
  }
  t.let_go(shared);
  t.end_layer("block");
  t.backward();
  for (const SavedId at : {saved[1], saved[0]}) t.run(10).drop(t.unpack(at));
  t.free(shared);
  const auto trace = std::make_shared<const TraceData>(t.finish(), "", "");
  const auto simulated = simulate(trace, std::make_shared<const PlanState>());
  ASSERT_TRUE(simulated);
  const Explained explained(*simulated);
  const PlanTree& tree = *explained.tree;
  const std::int32_t inner =
      tree.rows[static_cast<std::size_t>(tree.row_of_saved[saved[0].index()])].parent;
  const std::int32_t block = tree.rows[static_cast<std::size_t>(inner)].parent;
  ASSERT_GE(block, 0);
  EXPECT_EQ(tree.home_of_storages()[shared.index()], block);
  EXPECT_EQ(explained.figures[static_cast<std::size_t>(inner)].first, -1);
  EXPECT_EQ(explained.figures[static_cast<std::size_t>(block)].first,
            explained.figures[static_cast<std::size_t>(tree.row_of_saved[0])].first);
}

}  // namespace
}  // namespace stowage::gui
