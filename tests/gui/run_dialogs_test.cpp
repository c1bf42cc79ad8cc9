#include <QFile>
#include <QTemporaryDir>

#include "gui/widgets/record_dialog.h"
#include "gui/widgets/verify_dialog.h"
#include "simulator/plan/plan_json.h"
#include "tests/gui/workbench.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

using stowage::testing::spin_until;

class RunDialogsTest : public Workbench {
 protected:
  // A command in place of `stowage`.
  QString script(const char* body) {
    const QString file = folder_.filePath("stowage");
    EXPECT_TRUE(write_file(file.toStdString(), std::string("#!/bin/sh\n") + body + "\n"));
    QFile::setPermissions(file, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return file;
  }
  QTemporaryDir folder_;
};

TEST_F(RunDialogsTest, ARecordingIsLoggedAndOpened) {
  RecordDialog dialog;
  dialog.set_program(script("echo \"recording $*\" >&2"));
  dialog.show();
  dialog.model().setCurrentText("gpt2:layers=2");
  dialog.batch().setValue(4);
  dialog.optimizer().setCurrentText("adamw");
  dialog.file().setText(folder_.filePath("my step.json"));
  EXPECT_TRUE(dialog.command_line().startsWith("stowage profile gpt2:layers=2 -o '"))
      << dialog.command_line().toStdString();
  EXPECT_TRUE(dialog.command_line().endsWith("--batch 4 --dtype fp32 --optimizer adamw"));
  QString opened;
  QObject::connect(&dialog, &RecordDialog::recorded, [&](const QString& file) { opened = file; });
  QTest::mouseClick(&dialog.run_button(), Qt::LeftButton);
  ASSERT_TRUE(spin_until([&] { return !opened.isEmpty(); }));
  EXPECT_EQ(opened, folder_.filePath("my step.json"));
  EXPECT_TRUE(dialog.log().toPlainText().startsWith("recording profile gpt2:layers=2 -o "));
  picture(dialog, "record");
}

TEST_F(RunDialogsTest, AScalerNeedsAnOptimizer) {
  RecordDialog dialog;
  dialog.set_program(script("exit 0"));
  dialog.show();
  dialog.autocast().setCurrentText("fp16");
  EXPECT_TRUE(dialog.command_line().endsWith("--dtype fp32 --autocast fp16 --optimizer none"))
      << dialog.command_line().toStdString();
  dialog.grad_scaler().setCurrentText("on");
  EXPECT_FALSE(dialog.run_button().isEnabled());
  EXPECT_EQ(dialog.status(), "A gradient scaler needs an optimizer.");
  dialog.optimizer().setCurrentText("sgd");
  EXPECT_TRUE(dialog.run_button().isEnabled());
  EXPECT_TRUE(dialog.command_line().endsWith("--optimizer sgd --grad-scaler on"));
}

TEST_F(RunDialogsTest, CancelEndsTheCommand) {
  RecordDialog dialog;
  dialog.set_program(script("echo started >&2; exec sleep 1000"));
  dialog.show();
  bool opened = false;
  QObject::connect(&dialog, &RecordDialog::recorded, [&] { opened = true; });
  QTest::mouseClick(&dialog.run_button(), Qt::LeftButton);
  ASSERT_TRUE(spin_until([&] { return dialog.log().toPlainText().contains("started"); }));
  EXPECT_FALSE(dialog.run_button().isEnabled());
  QTest::mouseClick(&dialog.cancel_button(), Qt::LeftButton);
  ASSERT_TRUE(spin_until([&] { return !dialog.command().running(); }));
  EXPECT_EQ(dialog.status(), "Cancelled.");
  EXPECT_FALSE(opened);
  EXPECT_TRUE(dialog.run_button().isEnabled());
}

TEST_F(RunDialogsTest, AFailureAndAMissingCommandAreSaid) {
  RecordDialog dialog;
  dialog.set_program(script("echo no GPU >&2; exit 4"));
  dialog.show();
  QTest::mouseClick(&dialog.run_button(), Qt::LeftButton);
  ASSERT_TRUE(spin_until([&] { return dialog.status().contains("exit code 4"); }));
  EXPECT_EQ(dialog.log().toPlainText(), "no GPU\n");
  dialog.set_program({});
  EXPECT_FALSE(dialog.run_button().isEnabled());
  EXPECT_TRUE(dialog.status().contains("was not found"));
}

TEST_F(RunDialogsTest, VerifyRunsThePlanAsItIsNow) {
  open(sample("mlp-l6-fp32-cpu"));
  ASSERT_TRUE(document_.set_decision({SavedId(0)}, simulator::Decision::offload));
  settle();
  VerifyDialog dialog(document_);
  dialog.set_program(
      script("echo \"$*\" >&2\n"
             "echo '{\"schema\":\"stowage-verify/1\",\"bitwise\":true,\"measured\":"
             "{\"peak_requested_bytes\":1100},\"predicted\":{\"peak_requested_bytes\":1000}}'"));
  dialog.show();
  QString result;
  QObject::connect(&dialog, &VerifyDialog::verified, [&](const QString& file) { result = file; });
  QTest::mouseClick(&dialog.run_button(), Qt::LeftButton);
  ASSERT_TRUE(spin_until([&] { return !dialog.command().running(); }));
  EXPECT_TRUE(dialog.status().contains("bit by bit")) << dialog.status().toStdString();
  EXPECT_TRUE(dialog.status().contains("+10.0 %")) << dialog.status().toStdString();
  EXPECT_EQ(result, dialog.result_file());
  EXPECT_TRUE(QFile::exists(result));
  const auto plan = read_file(dialog.plan_file().toStdString());
  ASSERT_TRUE(plan);
  const auto read = simulator::plan_from_json(*plan, "plan");
  ASSERT_TRUE(read) << read.error().text();
  const auto decisions = simulator::resolve(document_.trace()->trace, *read);
  ASSERT_TRUE(decisions) << decisions.error().text();
  EXPECT_EQ(decisions->saved[0].decision, simulator::Decision::offload);
}

}  // namespace
}  // namespace stowage::gui
