#include "gui/widgets/details_view.h"

#include <QClipboard>

#include "simulator/machine/calibration_settings.h"
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
  state_.select({Selection::Kind::saved, 0});
  EXPECT_EQ(view_.reason(), "");
  // A stall of a plan that has none.
  state_.select({Selection::Kind::stall, 7});
  EXPECT_TRUE(view_.reason().contains("not in this plan"));
}

// What the sample's README and `stowage inspect` say of it.
TEST_F(DetailsViewTest, WithoutASelectionTheySumTheStepUp) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  EXPECT_EQ(view_.reason(), "");
  const auto value = [&](const char* name) {
    const auto found = view_.rows().findItems(name, Qt::MatchExactly | Qt::MatchRecursive, 0);
    return found.isEmpty() ? std::string("(no such row)") : found.first()->text(1).toStdString();
  };
  EXPECT_TRUE(value("Model").starts_with("llama3-8b:attention=math,")) << value("Model");
  EXPECT_EQ(value("Batch"), "8 of 1024 tokens");
  EXPECT_EQ(value("Dtype"), "fp32");
  EXPECT_EQ(value("Device"), "cuda");
  EXPECT_EQ(value("Recorded on"), "NVIDIA H200");
  EXPECT_EQ(value("Replayed on"), "the machine that recorded the step");
  EXPECT_EQ(value("Recorded step"), "2.57 s");
  EXPECT_EQ(value("Requested"), "63.0 GB (62,996,267,264 bytes)");
  show(view_, 560, 640);
  picture(view_, "details_step");
  // A long value has the lines that it needs, and one where there is room.
  const auto height = [&](const char* name) {
    const auto found = view_.rows().findItems(name, Qt::MatchExactly | Qt::MatchRecursive, 0);
    return view_.rows().visualItemRect(found.first()).height();
  };
  EXPECT_EQ(height("Holds"), height("Dtype"));
  view_.resize(330, 640);
  QApplication::processEvents();
  EXPECT_GT(height("Holds"), height("Dtype") * 3 / 2);
  Calibration slower = document_.trace()->trace.calibration;
  ASSERT_TRUE(simulator::apply_setting(slower, "link.d2h_gbps", 12));
  document_.set_calibration(slower);
  settle();
  EXPECT_TRUE(value("Replayed on").starts_with("an assumed")) << value("Replayed on");
  EXPECT_TRUE(value("Link").starts_with("12.0 GB/s to the host")) << value("Link");
  // The peak leads to its moment, and Esc back to the step.
  const auto peak = view_.rows().findItems("Requested", Qt::MatchExactly | Qt::MatchRecursive, 0);
  view_.rows().setCurrentItem(peak.first());
  QTest::keyClick(&view_.rows(), Qt::Key_Return);
  EXPECT_EQ(state_.selection().kind, Selection::Kind::event);
  state_.clear();
  EXPECT_EQ(value("Dtype"), "fp32");
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
  EXPECT_TRUE(text.contains("Decision: offload, copied out and back beside compute"))
      << text.toStdString();
  show(view_, 560, 640);
  picture(view_, "details");
  state_.select({Selection::Kind::layer, trace.saved.layer[rows[0].index()].value});
  picture(view_, "details_layer");
}

}  // namespace
}  // namespace stowage::gui
