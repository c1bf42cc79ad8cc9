// The blocks of device memory one by one, as a strip and as a table.
#include "gui/widgets/blocks_view.h"

#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

class BlocksViewTest : public testing::Hands {
 protected:
  BlocksView& blocks() {
    return *qobject_cast<BlocksView*>(window_.view(QStringLiteral("blocks")));
  }
  const MemoryBlock& largest() {
    return *std::max_element(
        blocks().blocks().begin(), blocks().blocks().end(),
        [](const MemoryBlock& a, const MemoryBlock& b) { return a.bytes < b.bytes; });
  }
};

TEST_F(BlocksViewTest, AtThePeakEachBlockHasItsAddressItsModuleAndItsMaker) {
  open(testing::kLlama);
  tab("Blocks");
  ASSERT_EQ(blocks().reason(), "");
  EXPECT_TRUE(blocks().title().contains("63.0 GB in ") &&
              blocks().title().contains("(planned memory)"))
      << blocks().title().toStdString();
  QTreeWidget& rows = blocks().rows();
  ASSERT_EQ(rows.topLevelItemCount(), static_cast<int>(blocks().blocks().size()));
  // In order of address, and the other way with a click on the header.
  for (int i = 1; i < rows.topLevelItemCount(); ++i) {
    ASSERT_GE(rows.topLevelItem(i)->text(0), rows.topLevelItem(i - 1)->text(0));
  }
  rows.sortByColumn(1, Qt::DescendingOrder);
  const QTreeWidgetItem& first = *rows.topLevelItem(0);
  EXPECT_EQ(first.text(1), "4.20 GB");
  EXPECT_EQ(first.text(2), "head");
  EXPECT_EQ(first.text(5), "[8, 1024, 128256]");
  EXPECT_EQ(first.text(6), "float32");
  picture("blocks");
  // The strip's pixel of that block, and its place in the table, select the same.
  const MemoryBlock logits = largest();
  const auto row = static_cast<int>(&largest() - blocks().blocks().data());
  const QPoint place = blocks().strip().place_of(row);
  ASSERT_GE(place.x(), 0);
  EXPECT_EQ(blocks().strip().block_at(place), row);
  QTest::mouseClick(&blocks().strip(), Qt::LeftButton, {}, place);
  window_.settle();
  ASSERT_TRUE(timeline().lifetime().has_value());
  EXPECT_EQ(timeline().lifetime()->storage, logits.storage);
  ASSERT_NE(rows.currentItem(), nullptr) << "it is marked in the table";
  EXPECT_EQ(rows.currentItem()->text(1), "4.20 GB");
  EXPECT_EQ(rows.currentItem()->text(2), "head");
  picture("blocks_selected");
  window_.state().select({});
  EXPECT_EQ(rows.currentItem(), nullptr);
}

TEST_F(BlocksViewTest, TheyFollowTheCursorAndTheMemoryOfThePlan) {
  open(testing::kLlama);
  tab("Blocks");
  choose(blocks().moment(), "at the cursor");
  const Nanoseconds end = window_.document().current()->result.step_ns;
  window_.state().set_cursor(end / 20);  // the real pointer is elsewhere and would leave again
  window_.settle();
  const std::size_t early = blocks().blocks().size();
  window_.state().set_cursor(end / 2);
  window_.settle();
  EXPECT_GT(blocks().blocks().size(), early);
  EXPECT_GT(early, 0U);
  choose(blocks().moment(), "at the peak");
  window_.document().set_placement(simulator::PlacementMode::caching);
  window_.settle();
  EXPECT_TRUE(blocks().title().contains("(caching allocator's model)"))
      << blocks().title().toStdString();
  EXPECT_GT(blocks().blocks().front().address, Bytes{1} << 40);
}

}  // namespace
}  // namespace stowage::gui
