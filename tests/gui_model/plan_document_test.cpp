#include "gui/model/plan_document.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <fstream>

#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan_json.h"
#include "tests/gui_model/spin.h"
#include "traces/file_io.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

using simulator::Decision;
using simulator::PeakKind;
using stowage::testing::spin_until;

const QString kSample =
    QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz");

class PlanDocumentTest : public ::testing::Test {
 protected:
  PlanDocumentTest() {
    QObject::connect(&document_, &PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
  }
  void settle() {
    ASSERT_TRUE(spin_until([this] {
      return !document_.loading().busy() && !document_.simulating().busy() &&
             !document_.searching().busy();
    }));
  }
  void open(const QString& file) {
    document_.open(file);
    settle();
  }
  // Rows that an offload of really frees.
  std::vector<SavedId> mlp_rows() {
    std::vector<SavedId> rows;
    const Trace& trace = document_.trace()->trace;
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      if (trace.string(trace.saved.site[i]).starts_with("layers.2.mlp#")) rows.emplace_back(i);
    }
    return rows;
  }
  Bytes peak() { return document_.current()->result.peak_requested; }

  PlanDocument document_;
  std::vector<std::string> errors_;
};

TEST_F(PlanDocumentTest, ATraceAloneIsTheStepInWhichNothingMoves) {
  EXPECT_EQ(document_.current(), nullptr);
  EXPECT_FALSE(document_.can_edit());
  open(kSample);
  ASSERT_NE(document_.current(), nullptr) << (errors_.empty() ? "" : errors_.front());
  EXPECT_EQ(peak(), 62'996'267'264);  // as `stowage inspect` says
  EXPECT_EQ(document_.trace()->resident_cached.peak_requested, peak());
  EXPECT_EQ(document_.current()->detail.time.size(), document_.trace()->trace.events.size());
  EXPECT_TRUE(document_.can_edit());
  EXPECT_EQ(document_.baseline(), nullptr);
}

TEST_F(PlanDocumentTest, AnEditIsReplayedAndCanBeTakenBack) {
  open(kSample);
  const Bytes resident = peak();
  const SimulatedPtr before = document_.current();
  const std::vector<SavedId> rows = mlp_rows();
  ASSERT_TRUE(document_.set_decision(rows, Decision::offload));
  settle();
  EXPECT_LT(peak(), resident);
  EXPECT_EQ(document_.previous(), before);
  EXPECT_EQ(document_.current()->decisions->saved[rows[0].index()].decision, Decision::offload);

  // The same as a replay of the rules that it is written as.
  const simulator::Plan written = plan_for_writing(*document_.current(), "");
  const auto lowered = simulator::lower(document_.trace()->index, written);
  ASSERT_TRUE(lowered) << lowered.error().text();
  EXPECT_EQ(simulator::replay(document_.trace()->index, lowered->schedule).peak_requested, peak());
  EXPECT_EQ(written.predicted->peak_requested, peak());

  const Bytes edited = peak();
  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(peak(), resident);
  document_.undo_stack().redo();
  settle();
  EXPECT_EQ(peak(), edited);
  EXPECT_TRUE(errors_.empty());
}

TEST_F(PlanDocumentTest, AnEditThatChangesNothingIsNone) {
  open(kSample);
  EXPECT_FALSE(document_.set_decision(mlp_rows(), Decision::keep));
  EXPECT_FALSE(document_.set_decision(std::vector<SavedId>{}, Decision::offload));
  EXPECT_EQ(document_.undo_stack().count(), 0);
}

TEST_F(PlanDocumentTest, EditsThatFollowEachOtherAtOnceAllCount) {
  open(kSample);
  const std::vector<SavedId> rows = mlp_rows();
  ASSERT_TRUE(document_.set_decision({rows[0]}, Decision::offload));
  ASSERT_TRUE(document_.set_decision({rows[1]}, Decision::offload));
  settle();
  EXPECT_EQ(document_.current()->decisions->saved[rows[0].index()].decision, Decision::offload);
  EXPECT_EQ(document_.current()->decisions->saved[rows[1].index()].decision, Decision::offload);
  EXPECT_EQ(document_.undo_stack().count(), 2);
}

TEST_F(PlanDocumentTest, ParametersOfALayerStreamAndStay) {
  open(kSample);
  const Bytes resident = peak();
  const std::vector<StreamingLayer> layers = streaming_layers_of(document_.trace()->trace);
  ASSERT_GT(layers.size(), 3U);
  ASSERT_TRUE(document_.set_streaming(layers, true));
  settle();
  EXPECT_LT(peak(), resident);
  EXPECT_FALSE(document_.current()->schedule.tenants.back().saved.size() > 0);
  EXPECT_TRUE(streams(*document_.current()->decisions, layers[1]));
  const simulator::Plan written = plan_for_writing(*document_.current(), "");
  ASSERT_TRUE(written.parameters.has_value());
  const auto again = simulator::resolve(document_.trace()->trace, written);
  ASSERT_TRUE(again) << again.error().text();
  for (const StreamingLayer& layer : layers) {
    EXPECT_TRUE(streams(*again, layer));
  }

  ASSERT_TRUE(document_.set_streaming({layers[1]}, false));
  settle();
  EXPECT_FALSE(streams(*document_.current()->decisions, layers[1]));
  EXPECT_TRUE(streams(*document_.current()->decisions, layers[2]));
  ASSERT_TRUE(document_.set_streaming(layers, false));
  settle();
  EXPECT_EQ(peak(), resident);
  EXPECT_TRUE(errors_.empty());
}

TEST_F(PlanDocumentTest, ADragOfTheBudgetUndoesAsOneAndKeepsTheBaseline) {
  open(kSample);
  const SimulatedPtr before = document_.current();
  for (const Bytes budget : {50'000'000'000, 45'000'000'000, 40'000'000'000}) {
    ASSERT_TRUE(document_.set_budget(budget, PeakKind::active, 1));
    settle();
  }
  EXPECT_EQ(document_.undo_stack().count(), 1);
  EXPECT_EQ(document_.previous(), before);
  EXPECT_EQ(document_.current()->plan().budget.device, 40'000'000'000);
  EXPECT_FALSE(document_.current()->device_kept);
  ASSERT_TRUE(document_.set_budget(70'000'000'000, PeakKind::active, 2));
  settle();
  EXPECT_EQ(document_.undo_stack().count(), 2);
  EXPECT_TRUE(document_.current()->device_kept);
  document_.undo_stack().undo();
  document_.undo_stack().undo();
  settle();
  EXPECT_FALSE(document_.current()->plan().budget.device.has_value());
}

TEST_F(PlanDocumentTest, APlanIsFoundSavedAndOpenedAgainWithItsTrace) {
  open(kSample);
  planner::PlanRequest request;
  request.budget = 36'000'000'000;
  request.budget_text = "36GB";
  document_.find_plan(request);
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  ASSERT_TRUE(document_.outcome().has_value());
  ASSERT_TRUE(document_.outcome()->feasible());
  EXPECT_LE(document_.current()->result.peak_active, 36'000'000'000);
  EXPECT_EQ(document_.current()->result.step_ns, document_.outcome()->predicted.step_ns);

  const QTemporaryDir folder;
  const QString file = folder.filePath("p.json");
  const Status saved = document_.save_plan(file);
  ASSERT_TRUE(saved) << saved.error().text();
  const Bytes found = peak();

  PlanDocument other;
  other.open(file);
  ASSERT_TRUE(spin_until([&] { return !other.loading().busy(); }));
  ASSERT_NE(other.current(), nullptr);
  EXPECT_EQ(other.current()->result.peak_requested, found);
  EXPECT_EQ(other.plan_file(), file.toStdString());
  EXPECT_EQ(document_.plan_file(), file.toStdString()) << "of the one that was saved, too";
}

TEST_F(PlanDocumentTest, AFileThatIsNoneOfOursLeavesWhatIsOpen) {
  open(kSample);
  const SimulatedPtr before = document_.current();
  const QTemporaryDir folder;
  const QString rubbish = folder.filePath("rubbish.json");
  for (const char* content :
       {"", "{", "\x1f\x8b\x08rubbish", "[1,2]", "{\"schema\":\"stowage-plan/1\"",
        "{\"schema\":\"other/1\"}", "{\"schema\":{\"name\":\"x\"}}"}) {
    ASSERT_TRUE(write_file(rubbish.toStdString(), content));
    errors_.clear();
    open(rubbish);
    ASSERT_EQ(errors_.size(), 1U) << content;
    EXPECT_NE(errors_[0].find("rubbish.json"), std::string::npos) << errors_[0];
    EXPECT_EQ(document_.current(), before);
  }
  errors_.clear();
  open(folder.filePath("missing.json"));
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(document_.current(), before);
  EXPECT_EQ(document_.file(), kSample);
}

// Its rows are of another step than the one that is shown.
TEST_F(PlanDocumentTest, APlanWhoseOpsCannotRunAgainIsRefusedWithTheReason) {
  open(kSample);
  const SimulatedPtr before = document_.current();
  QTemporaryDir folder;
  const QString file = folder.filePath(QStringLiteral("again.json"));
  std::ofstream(file.toStdString()) << R"({"schema": "stowage-plan/1",
             "saved": [{"site": "layers.[0-8].mlp#14", "do": "recompute", "by": "ops"}]})";
  open(file);
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_NE(errors_[0].find("cannot be made again by ops"), std::string::npos) << errors_[0];
  EXPECT_EQ(document_.current(), before);
}

TEST_F(PlanDocumentTest, AFileThatVanishesWhileItIsOpenStaysShown) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("t.json.gz");
  ASSERT_TRUE(QFile::copy(kSample, file));
  open(file);
  const SimulatedPtr before = document_.current();
  ASSERT_NE(before, nullptr);
  ASSERT_TRUE(QFile::remove(file));
  document_.reload();
  settle();
  EXPECT_EQ(errors_.size(), 1U);
  EXPECT_EQ(document_.current(), before);
  // Nothing of it is read again.
  ASSERT_TRUE(document_.set_decision(mlp_rows(), Decision::offload));
  settle();
  EXPECT_LT(peak(), before->result.peak_requested);
}

TEST_F(PlanDocumentTest, AnotherLinkIsAssumedUntilTheRecordedOneIsRestored) {
  open(kSample);
  ASSERT_TRUE(document_.set_streaming(streaming_layers_of(document_.trace()->trace), true));
  settle();
  const Nanoseconds recorded = document_.current()->result.step_ns;
  Calibration slow = document_.trace()->trace.calibration;
  for (std::int64_t& rate : slow.h2d.bytes_per_second) rate /= 40;
  document_.set_calibration(slow);
  settle();
  EXPECT_TRUE(document_.is_assumed());
  EXPECT_EQ(document_.trace()->machine, MachineKind::assumed);
  EXPECT_GT(document_.current()->result.step_ns, recorded);
  EXPECT_GT(document_.current()->result.stall_ns, 0);
  document_.restore_calibration();
  settle();
  EXPECT_FALSE(document_.is_assumed());
  EXPECT_EQ(document_.current()->result.step_ns, recorded);
}

TEST_F(PlanDocumentTest, APinnedResultStaysTheBaseline) {
  open(kSample);
  document_.pin();
  const SimulatedPtr pinned = document_.current();
  for (const SavedId row : mlp_rows()) {
    document_.set_decision({row}, Decision::offload);
    settle();
  }
  EXPECT_EQ(document_.baseline(), pinned);
  document_.unpin();
  EXPECT_EQ(document_.baseline(), document_.previous());
}

}  // namespace
}  // namespace stowage::gui
