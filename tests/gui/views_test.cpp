// The views in the real window.
#include "gui/widgets/compare_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/pareto_view.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/record_dialog.h"
#include "gui/widgets/verify_dialog.h"
#include "tests/gui/window.h"

namespace stowage::testing {
namespace {

class ViewsTest : public WindowTest {};

TEST_F(ViewsTest, EveryViewThatThisProgramHasIsThereAndHasAName) {
  for (const char* id : {"plan", "details", "alive", "what_if", "pareto", "compare"}) {
    ASSERT_NE(window_.view(id), nullptr) << id;
    EXPECT_FALSE(window_.view(id)->accessibleName().isEmpty()) << id;
  }
}

TEST_F(ViewsTest, AnOffloadInTheTreeIsSeenInTheMemoryCurveAndTheComparison) {
  open(kLlama);
  auto* plan = qobject_cast<gui::PlanTreeView*>(window_.view("plan"));
  ASSERT_NE(plan, nullptr);
  const Bytes before = memory().view()->memory.peak();
  plan->tree().selectAll();
  QTest::keyClick(&plan->tree(), Qt::Key_O);
  window_.settle();
  EXPECT_LT(memory().view()->memory.peak(), before);
  window_.raise_view("compare");
  window_.settle();
  auto* compare = qobject_cast<gui::CompareView*>(window_.view("compare"));
  ASSERT_FALSE(compare->compared_rows().empty());
  EXPECT_EQ(compare->compared_rows().front().sign, -1);
  const QString folder = qEnvironmentVariable("STOWAGE_PICTURES");
  if (!folder.isEmpty()) window_.grab().save(folder + "/window.png");
  EXPECT_TRUE(errors_.empty());
}

TEST_F(ViewsTest, TheDialogsOpenFromTheMenusAndOnce) {
  open(kSmallCpu);
  for (int i = 0; i < 2; ++i) {
    window_.action("record")->trigger();
    window_.action("verify")->trigger();
  }
  EXPECT_EQ(window_.findChildren<gui::RecordDialog*>().size(), 1);
  EXPECT_EQ(window_.findChildren<gui::VerifyDialog*>().size(), 1);
  EXPECT_TRUE(window_.findChild<gui::RecordDialog*>()->isVisible());
}

TEST_F(ViewsTest, ClosingTheWindowInTheMiddleOfASearchIsFine) {
  auto window = std::make_unique<gui::MainWindow>();
  window->show();
  window->open_files({kLlama});
  window->settle();
  auto* pareto = qobject_cast<gui::ParetoView*>(window->view("pareto"));
  pareto->search().start();
  EXPECT_TRUE(window->busy());
  window.reset();
  QApplication::processEvents();
  EXPECT_TRUE(errors_.empty());
}

}  // namespace
}  // namespace stowage::testing
