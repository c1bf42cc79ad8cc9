#include "gui/widgets/details_view.h"

#include <QClipboard>

#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

class DetailsViewTest : public Workbench {
 protected:
  DetailsView view_{document_, state_, explanations_};
};

TEST_F(DetailsViewTest, AnEmptyViewSaysWhy) {
  EXPECT_TRUE(view_.reason().contains("No trace is open")) << view_.reason().toStdString();
  open(stowage::testing::small_trace());
  EXPECT_TRUE(view_.reason().contains("Nothing is selected"));
  state_.select({Selection::Kind::saved, 0});
  EXPECT_EQ(view_.reason(), "");
  // A stall of a plan that has none.
  state_.select({Selection::Kind::stall, 7});
  EXPECT_TRUE(view_.reason().contains("not in this plan"));
}

TEST_F(DetailsViewTest, ReturnGoesToWhatARowSpeaksOf) {
  open(stowage::testing::small_trace());
  state_.select({Selection::Kind::saved, 1});
  show(view_, 500, 500);
  const auto found = view_.rows().findItems("Layer", Qt::MatchExactly | Qt::MatchRecursive, 0);
  ASSERT_FALSE(found.isEmpty());
  EXPECT_EQ(found.first()->text(1), "layers.1");
  view_.rows().setCurrentItem(found.first());
  QTest::keyClick(&view_.rows(), Qt::Key_Return);
  EXPECT_EQ(state_.selection(), (Selection{Selection::Kind::layer, 2}));
}

TEST_F(DetailsViewTest, CtrlCCopiesAllOfItAsText) {
  open(stowage::testing::small_trace());
  state_.select({Selection::Kind::saved, 1});
  QTest::keyClick(&view_.rows(), Qt::Key_C, Qt::ControlModifier);
  EXPECT_TRUE(QGuiApplication::clipboard()->text().contains("Site: layers.1#0"));
}

TEST_F(DetailsViewTest, AnEditIsSeenInTheDetailsOnceItIsReplayed) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  const Trace& trace = document_.trace()->trace;
  std::vector<SavedId> rows;
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    if (trace.string(trace.saved.site[i]).starts_with("layers.2.mlp#")) rows.emplace_back(i);
  }
  state_.select({Selection::Kind::saved, rows[1].value});
  ASSERT_TRUE(document_.set_decision(rows, simulator::Decision::offload));
  settle();
  const QString text = QString::fromStdString(details_text(view_.details()));
  EXPECT_TRUE(text.contains("Decision: offload")) << text.toStdString();
  show(view_, 560, 640);
  picture(view_, "details");
  state_.select({Selection::Kind::layer, trace.saved.layer[rows[0].index()].value});
  picture(view_, "details_layer");
}

}  // namespace
}  // namespace stowage::gui
