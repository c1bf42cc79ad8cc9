// Files in whatever order and combination: what is shown is what was asked for, or it is said.
#include <QComboBox>
#include <QFile>
#include <QTemporaryDir>

#include "gui/app/recent_files.h"
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

const QString kMlp =
    QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/mlp-l6-fp32-cpu.trace.json.gz");

class Opening : public testing::WindowTest {
 protected:
  void open_all(const QStringList& files) {
    window_.open_files(files);
    window_.settle();
  }
  // A plan for this trace that offloads everything.
  QString plan_for(const QString& trace, const char* name) {
    open(trace);
    std::vector<SavedId> all;
    for (std::size_t i = 0; i < window_.document().trace()->trace.saved.size(); ++i) {
      all.emplace_back(i);
    }
    window_.document().set_decision(all, simulator::Decision::offload);
    window_.settle();
    const QString file = folder_.filePath(QLatin1String(name));
    EXPECT_TRUE(window_.document().save_plan(file));
    window_.document().close();
    return file;
  }
  QString said() { return window_.message().isVisible() ? window_.message().text() : QString(); }
  bool moves() { return !window_.document().current()->schedule.instructions.empty(); }
  QString shown_trace() { return QString::fromStdString(window_.document().trace()->path); }

  QTemporaryDir folder_;
};

// The string of one id is another one in the second file.
TEST_F(Opening, TheLanesOfASecondFileHaveItsOwnNames) {
  state().set_shown(Shown::planned);
  open(kMlp);
  const QImage first = timeline().grab().toImage();
  open(testing::kSmallCpu);
  // Of a timeline that has painted nothing yet.
  timeline().clearFocus();
  const QImage second = timeline().grab().toImage();
  TimelinePlot alone(state());
  alone.setPalette(timeline().palette());
  alone.resize(timeline().size());
  alone.show_step(window_.document().trace(), timeline().view());
  EXPECT_EQ(second, alone.grab().toImage());
  EXPECT_NE(second, first);
}

TEST_F(Opening, APlanAheadOfItsTraceIsShownOnIt) {
  const QString plan = plan_for(kMlp, "plan.json");
  open_all({plan, kMlp});
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(shown_trace(), kMlp);
  EXPECT_TRUE(moves());
  EXPECT_EQ(said(), "");
  EXPECT_EQ(recent_files().mid(0, 2), (QStringList{plan, kMlp}));
}

TEST_F(Opening, APlanForAnotherTraceSaysSo) {
  const QString plan = plan_for(kMlp, "plan.json");
  open_all({testing::kSmallCpu, plan});
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(shown_trace().section('/', -1), kMlp.section('/', -1));
  EXPECT_TRUE(said().contains("plan.json is not for gpt2-l6-fp32-cpu.trace.json.gz"))
      << said().toStdString();
  // Of a trace that was open already, too.
  open(testing::kSmallCpu);
  open(plan);
  EXPECT_TRUE(said().contains("it is for mlp-l6-fp32-cpu.trace.json.gz")) << said().toStdString();
  // One for what is open has nothing to say.
  open(plan);
  EXPECT_EQ(said(), "");
}

TEST_F(Opening, APlanWhoseTraceIsNotThereSaysWhichOneIsOpen) {
  const QString plan = plan_for(kMlp, "plan.json");
  QFile file(plan);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  QByteArray text = file.readAll();
  file.close();
  text.replace("mlp-l6-fp32-cpu", "gone");
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write(text);
  file.close();
  open_all({testing::kSmallCpu, plan});
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_NE(errors_[0].find("not for gpt2-l6-fp32-cpu.trace.json.gz, which is open"),
            std::string::npos)
      << errors_[0];
  EXPECT_EQ(shown_trace(), testing::kSmallCpu) << "the trace is shown all the same";
}

TEST_F(Opening, ANoteIsSaidBesideAnError) {
  const QString plan = plan_for(kMlp, "plan.json");
  const QString bad = folder_.filePath(QStringLiteral("bad.json"));
  QFile file(bad);
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write("{");
  file.close();
  open_all({testing::kSmallCpu, plan, bad});
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_NE(errors_[0].find("bad.json: "), std::string::npos) << errors_[0];
  const QStringList lines = said().split('\n');
  ASSERT_EQ(lines.size(), 2) << said().toStdString();
  EXPECT_TRUE(lines[0].contains("bad.json: ")) << lines[0].toStdString();
  EXPECT_TRUE(lines[1].startsWith("plan.json is not for gpt2-l6-fp32-cpu.trace.json.gz"))
      << lines[1].toStdString();
}

TEST_F(Opening, OfTwoTracesTheLastOneIsShownAndThatIsSaid) {
  open_all({testing::kSmallCpu, kMlp});
  EXPECT_EQ(shown_trace(), kMlp);
  EXPECT_EQ(said(),
            "One trace is shown at a time: mlp-l6-fp32-cpu.trace.json.gz, not "
            "gpt2-l6-fp32-cpu.trace.json.gz.");
}

TEST_F(Opening, EveryFileThatCannotBeOpenedIsNamedAndTheOthersAreShown) {
  open_all({folder_.filePath("one.json"), kMlp, folder_.filePath("two.json")});
  EXPECT_EQ(shown_trace(), kMlp);
  EXPECT_TRUE(said().contains("2 files cannot be opened")) << said().toStdString();
  EXPECT_TRUE(said().contains("one.json: there is no such file")) << said().toStdString();
  EXPECT_TRUE(said().contains("two.json: there is no such file")) << said().toStdString();
  EXPECT_EQ(recent_files().mid(0, 1), QStringList{kMlp});
}

// A GPU's events have the times of their launches: "automatic" is the replay there.
TEST_F(Opening, AutomaticShowsWhatItsToolTipSays) {
  open(kMlp);
  EXPECT_EQ(timeline().view()->source, Source::measured);
  open(STOWAGE_SOURCE_DIR "/traces/samples/mlp-l6-fp32-h200.trace.json.gz");
  EXPECT_EQ(timeline().view()->source, Source::predicted);
  const QString tip = window_.findChild<QComboBox*>("shown")->toolTip();
  EXPECT_TRUE(tip.contains("a recording on the CPU is shown as it was measured"))
      << tip.toStdString();
  EXPECT_TRUE(tip.contains("one on a GPU is replayed")) << tip.toStdString();
}

}  // namespace
}  // namespace stowage::gui
