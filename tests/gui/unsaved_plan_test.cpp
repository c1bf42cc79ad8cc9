// A plan that was edited is not dropped without a question: quitting, closing and opening.
#include <QDropEvent>
#include <QMessageBox>
#include <QMimeData>
#include <QTemporaryDir>

#include "simulator/plan/plan_json.h"
#include "tests/gui/hands.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

class UnsavedPlan : public testing::Hands {
 protected:
  void edit() {
    window_.document().set_budget(Bytes{36'000'000'000}, simulator::PeakKind::reserved);
    window_.settle();
    ASSERT_FALSE(window_.document().undo_stack().isClean());
  }
  // The next question gets this answer; how many were asked is in asked_.
  void answer(QMessageBox::StandardButton with) {
    auto* timer = new QTimer(&window_);
    QObject::connect(timer, &QTimer::timeout, timer, [this, timer, with] {
      auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (question == nullptr || !question->isVisible()) return;
      EXPECT_EQ(question->text(), "The plan was edited and is not saved.");
      ++asked_;
      timer->stop();
      QTest::mouseClick(question->button(with), Qt::LeftButton);
    });
    timer->start(20);
  }
  void drop(const QString& file) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(file)});
    QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(&window_, &enter);
    QDropEvent event(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(&window_, &event);
    window_.settle();
  }
  int asked_ = 0;
};

TEST_F(UnsavedPlan, WithoutAnEditNobodyIsAsked) {
  open(testing::kLlama);
  drop(testing::kSmallCpu);
  EXPECT_EQ(window_.document().file(), testing::kSmallCpu);
  window_.action("close")->trigger();
  EXPECT_EQ(window_.document().trace(), nullptr);
  EXPECT_TRUE(window_.close());
}

TEST_F(UnsavedPlan, CancelKeepsTheWindowAndThePlan) {
  open(testing::kLlama);
  edit();
  answer(QMessageBox::Cancel);
  EXPECT_FALSE(window_.close());
  EXPECT_TRUE(window_.isVisible());
  answer(QMessageBox::Cancel);
  window_.action("close")->trigger();
  answer(QMessageBox::Cancel);
  drop(testing::kSmallCpu);
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(window_.document().file(), testing::kLlama);
  EXPECT_EQ(window_.document().current()->plan().budget.device, 36'000'000'000);
}

TEST_F(UnsavedPlan, DiscardGoesOn) {
  open(testing::kLlama);
  edit();
  answer(QMessageBox::Discard);
  drop(testing::kSmallCpu);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(window_.document().file(), testing::kSmallCpu);
}

TEST_F(UnsavedPlan, SaveWritesItFirst) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("p.json");
  open(testing::kLlama);
  edit();
  ASSERT_TRUE(window_.document().save_plan(file));
  window_.document().set_budget(Bytes{30'000'000'000}, simulator::PeakKind::reserved);
  window_.settle();
  answer(QMessageBox::Save);
  EXPECT_TRUE(window_.close());
  EXPECT_EQ(asked_, 1);
  const auto text = read_file(file.toStdString());
  ASSERT_TRUE(text.ok());
  const auto plan = simulator::plan_from_json(*text, "p.json");
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_EQ(plan->budget.device, 30'000'000'000);
}

}  // namespace
}  // namespace stowage::gui
