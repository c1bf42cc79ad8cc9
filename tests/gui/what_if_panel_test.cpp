#include "gui/widgets/what_if_panel.h"

#include "planner/budget.h"
#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

class WhatIfPanelTest : public Workbench {
 protected:
  void type(QWidget& field, const char* text) {
    field.setFocus();
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, text);
    QTest::keyClick(&field, Qt::Key_Return);
  }
  WhatIfPanel panel_{document_};
};

TEST_F(WhatIfPanelTest, ItHasAFieldForEverySettingOfTheCommandLine) {
  open(stowage::testing::small_trace());
  for (const auto& setting : simulator::calibration_settings()) {
    const QDoubleSpinBox* field = panel_.machine().field(QString::fromStdString(setting.name));
    ASSERT_NE(field, nullptr) << setting.name;
    EXPECT_NEAR(field->value(),
                simulator::setting_value(document_.trace()->trace.calibration, setting.name), 0.01);
    EXPECT_FALSE(field->accessibleDescription().isEmpty());
  }
  EXPECT_FALSE(panel_.machine().reset_button().isEnabled());
}

TEST_F(WhatIfPanelTest, AnotherLinkIsReplayedAtOnceMarkedAndReset) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(panel_, 480, 760);
  const Trace& trace = document_.trace()->trace;
  std::vector<SavedId> rows = saved_in(trace, trace.saved.layer[200]);
  ASSERT_TRUE(document_.set_decision(rows, simulator::Decision::offload));
  settle();
  const Nanoseconds step = document_.current()->result.step_ns;
  QDoubleSpinBox& field = *panel_.machine().field("link.h2d_gbps");
  type(field, "0.5");
  EXPECT_TRUE(document_.is_assumed());
  settle();
  EXPECT_GT(document_.current()->result.step_ns, step);
  EXPECT_NEAR(simulator::setting_value(document_.trace()->trace.calibration, "link.h2d_gbps"), 0.5,
              1e-6);
  EXPECT_TRUE(panel_.machine().is_marked("link.h2d_gbps"));
  EXPECT_FALSE(panel_.machine().is_marked("link.d2h_gbps"));
  picture(panel_, "what_if");
  QTest::mouseClick(&panel_.machine().reset_button(), Qt::LeftButton);
  settle();
  EXPECT_FALSE(document_.is_assumed());
  EXPECT_FALSE(panel_.machine().is_marked("link.h2d_gbps"));
  EXPECT_EQ(document_.current()->result.step_ns, step);
}

TEST_F(WhatIfPanelTest, TheArrowsOfAFieldReplayToo) {
  open(stowage::testing::small_trace());
  show(panel_, 480, 760);
  QDoubleSpinBox& field = *panel_.machine().field("link.d2h_gbps");
  field.setFocus();
  QTest::keyClick(&field, Qt::Key_Up);
  settle();
  EXPECT_NEAR(simulator::setting_value(document_.trace()->trace.calibration, "link.d2h_gbps"), 13,
              0.01);
}

TEST_F(WhatIfPanelTest, ABudgetIsAnEditOfThePlanAndCanBeTakenBack) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(panel_, 480, 760);
  type(panel_.budget(), "36GB");
  settle();
  EXPECT_EQ(document_.current()->plan().budget.device, 36'000'000'000);
  EXPECT_FALSE(document_.current()->device_kept);
  type(panel_.budget(), "lots");
  EXPECT_TRUE(panel_.problem().contains("Budget"));
  EXPECT_EQ(document_.undo_stack().count(), 1);
  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(panel_.budget().text(), "");
  type(panel_.host_budget(), "64GiB");
  settle();
  EXPECT_EQ(document_.current()->plan().budget.host, Bytes{64} << 30U);
}

TEST_F(WhatIfPanelTest, ACardGivesTheBudgetWithWhichTheStepRunsOnIt) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  panel_.card().setCurrentIndex(panel_.card().findData("80GiB"));
  Q_EMIT panel_.card().activated(panel_.card().currentIndex());
  settle();
  const simulator::PlanBudget& budget = document_.current()->plan().budget;
  EXPECT_EQ(budget.on, simulator::PeakKind::reserved);
  EXPECT_EQ(budget.device,
            planner::reserved_to_fit(document_.trace()->trace, Bytes{80} << 30).value());
  EXPECT_EQ(panel_.card().currentData().toString(), "80GiB") << "while it is what is planned for";
  type(panel_.budget(), "36GB");
  settle();
  EXPECT_EQ(panel_.card().currentIndex(), 0);
  document_.undo_stack().undo();
  document_.undo_stack().undo();
  settle();
  EXPECT_FALSE(document_.current()->plan().budget.device.has_value());
}

TEST_F(WhatIfPanelTest, AKnownLinkSetsBothDirections) {
  open(stowage::testing::small_trace());
  panel_.machine().link().setCurrentIndex(3);
  Q_EMIT panel_.machine().link().activated(3);
  settle();
  EXPECT_NEAR(panel_.machine().field("link.h2d_gbps")->value(), 55, 0.01);
  EXPECT_TRUE(panel_.machine().is_marked("link.h2d_gbps"));
  EXPECT_TRUE(panel_.machine().is_marked("link.d2h_gbps"));
}

TEST_F(WhatIfPanelTest, TheChosenLinkStaysChosenWhateverIsPlanned) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(panel_, 640, 420);
  QComboBox& link = panel_.machine().link();
  EXPECT_EQ(link.currentText(), "as recorded");
  link.setCurrentIndex(1);
  Q_EMIT link.activated(1);
  settle();
  EXPECT_EQ(link.currentText(), "PCIe 3.0 x16 (about 12 GB/s)");
  planner::PlanRequest request;
  request.budget = 36'000'000'000;
  document_.find_plan(request);
  settle();
  ASSERT_EQ(document_.undo_stack().count(), 1);
  EXPECT_EQ(link.currentText(), "PCIe 3.0 x16 (about 12 GB/s)");
  EXPECT_FALSE(panel_.machine().reset_button().visibleRegion().isEmpty()) << "not scrolled away";
  type(*panel_.machine().field("link.h2d_gbps"), "13");
  settle();
  EXPECT_EQ(link.currentText(), "none of these");
  QTest::mouseClick(&panel_.machine().reset_button(), Qt::LeftButton);
  settle();
  EXPECT_EQ(link.currentText(), "as recorded");
}

TEST_F(WhatIfPanelTest, SettingsAreNamedInWordsWithTheirUnit) {
  open(stowage::testing::small_trace());
  QStringList labels;
  // A word joiner keeps "GB/s" on one line.
  for (const QLabel* label : panel_.machine().findChildren<QLabel*>()) {
    labels << label->text().remove(QChar(0x2060));
  }
  for (const auto& setting : simulator::calibration_settings()) {
    const QString key = QString::fromStdString(setting.name);
    const QDoubleSpinBox& field = *panel_.machine().field(key);
    EXPECT_FALSE(labels.contains(key)) << setting.name;
    EXPECT_TRUE(labels.contains(field.accessibleName())) << setting.name;
    EXPECT_TRUE(field.accessibleName().endsWith(
        setting.unit.empty() ? QString(", factor") : ", " + QString::fromStdString(setting.unit)));
    EXPECT_TRUE(field.toolTip().contains(key)) << "for those who write --set";
  }
}

}  // namespace
}  // namespace stowage::gui
