// The dialogs with the real command: a step is recorded, opened, planned and verified from the
// window. Needs a build with LibTorch, or STOWAGE_TEST_COMMAND = the `stowage` of one.
#include <QTemporaryDir>

#include "gui/widgets/compare_view.h"
#include "gui/widgets/record_dialog.h"
#include "gui/widgets/verify_dialog.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

// Some minutes: LibTorch may start on a machine that has much to do.
template <class Condition>
bool wait_for(Condition holds) {
  for (int minute = 0; minute < 5; ++minute) {
    if (testing::spin_until(holds)) return true;
  }
  return false;
}

QString real_command() {
  const QString named = qEnvironmentVariable("STOWAGE_TEST_COMMAND");
  if (!named.isEmpty()) return named;
  return STOWAGE_HAVE_TORCH ? QStringLiteral(STOWAGE_BIN_DIR "/stowage") : QString();
}

class RealRun : public testing::Hands {};

TEST_F(RealRun, AStepIsRecordedOpenedPlannedAndVerified) {
  const QString command = real_command();
  if (command.isEmpty()) GTEST_SKIP() << "this build has no LibTorch, and no command was named";
  const QTemporaryDir folder;
  const QString file = folder.filePath("step.trace.json.gz");

  menu({"File", "Record a step..."});
  auto* record = window_.findChild<RecordDialog*>();
  ASSERT_NE(record, nullptr);
  record->set_program(command);
  record->model().setCurrentText("mlp:layers=2,width=64,hidden=128");
  record->device().setCurrentText("cpu");
  record->optimizer().setCurrentText("sgd");
  record->file().setText(file);
  QTest::mouseClick(&record->run_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return !record->command().running(); }));
  EXPECT_TRUE(record->status().contains("Recorded into"))
      << record->status().toStdString() << "\n"
      << record->log().toPlainText().toStdString();
  window_.settle();
  ASSERT_NE(window_.document().current(), nullptr);
  EXPECT_EQ(window_.document().file(), file);
  EXPECT_GT(window_.document().trace()->trace.saved.size(), 0U);
  EXPECT_EQ(timeline().view()->source, Source::measured);

  type(*window_.findChild<QLineEdit*>("budget"), "95%");
  ASSERT_TRUE(window_.document().current()->device_kept);
  const Bytes predicted = window_.document().current()->result.peak_requested;

  menu({"Plan", "Verify on this machine..."});
  auto* verify = window_.findChild<VerifyDialog*>();
  ASSERT_NE(verify, nullptr);
  verify->set_program(command);
  QTest::mouseClick(&verify->run_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return !verify->command().running(); }));
  EXPECT_TRUE(verify->status().contains("equal, bit by bit"))
      << verify->status().toStdString() << "\n"
      << verify->log().toPlainText().toStdString();
  window_.settle();
  ASSERT_TRUE(window_.document().measured().has_value());
  EXPECT_EQ(window_.document().measured()->measured.peak_requested, predicted);
  window_.raise_view("compare");
  window_.settle();
  const auto* compare = qobject_cast<CompareView*>(window_.view("compare"));
  EXPECT_EQ(compare->reason(), "");
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

TEST_F(RealRun, CancelEndsARecordingAndLeavesNoFile) {
  const QString command = real_command();
  if (command.isEmpty()) GTEST_SKIP() << "this build has no LibTorch, and no command was named";
  const QTemporaryDir folder;
  menu({"File", "Record a step..."});
  auto* record = window_.findChild<RecordDialog*>();
  record->set_program(command);
  record->model().setCurrentText("gpt2:layers=12");
  record->device().setCurrentText("cpu");
  record->file().setText(folder.filePath("step.trace.json.gz"));
  QTest::mouseClick(&record->run_button(), Qt::LeftButton);
  ASSERT_TRUE(testing::spin_until([&] { return record->command().running(); }));
  QTest::mouseClick(&record->cancel_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return !record->command().running(); }));
  EXPECT_EQ(record->status(), "Cancelled.");
  EXPECT_TRUE(QDir(folder.path()).isEmpty(QDir::Files));
  EXPECT_EQ(window_.document().current(), nullptr);
}

}  // namespace
}  // namespace stowage::gui
