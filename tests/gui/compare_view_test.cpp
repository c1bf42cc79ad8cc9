#include "gui/widgets/compare_view.h"

#include <QTemporaryDir>
#include <algorithm>
#include <set>

#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/value_texts.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/plan/plan_json.h"
#include "tests/gui/workbench.h"
#include "tests/support/schedule_parts.h"
#include "tests/support/small_trace.h"
#include "traces/file_io.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

class CompareViewTest : public Workbench {
 protected:
  CompareViewTest() {
    QObject::connect(&view_, &CompareView::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
  }
  void settle_all() {
    settle();
    ASSERT_TRUE(stowage::testing::spin_until([this] { return !view_.job().busy(); }));
  }
  void offload_a_layer() {
    const Trace& trace = document_.trace()->trace;
    ASSERT_TRUE(document_.set_decision(saved_in(trace, trace.saved.layer[trace.saved.size() / 2]),
                                       simulator::Decision::offload));
    settle_all();
  }
  const ComparedRow* row(const std::string& name) {
    const auto& rows = view_.compared_rows();
    const auto at = std::find_if(rows.begin(), rows.end(),
                                 [&](const ComparedRow& one) { return one.name == name; });
    return at == rows.end() ? nullptr : &*at;
  }
  CompareView view_{document_, state_};
};

TEST_F(CompareViewTest, EmptyViewsSayWhatToDo) {
  EXPECT_TRUE(view_.reason().contains("No trace is open"));
  open(stowage::testing::small_trace());
  EXPECT_TRUE(view_.reason().contains("nothing before this plan"));
  view_.compare_with(CompareView::What::measured);
  EXPECT_TRUE(view_.reason().contains("Verify on this machine"));
  view_.compare_with(CompareView::What::file);
  EXPECT_TRUE(view_.reason().contains("No file was chosen"));
}

TEST_F(CompareViewTest, AnEditIsComparedWithWhatWasBefore) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 700);
  offload_a_layer();
  ASSERT_EQ(view_.reason(), "");
  const ComparedRow* peak = row("peak requested");
  ASSERT_NE(peak, nullptr);
  EXPECT_EQ(peak->sign, -1);
  EXPECT_TRUE(peak->difference.starts_with("-")) << peak->difference;
  EXPECT_TRUE(peak->relative.ends_with(" %"));
  EXPECT_FALSE(view_.curves().empty());
  EXPECT_EQ(view_.rows().topLevelItem(0)->text(0), "memory");
  EXPECT_TRUE(view_.rows().topLevelItem(1)->text(3).startsWith("▼"));
  for (const char* heading : {"memory", "time", "copies", "decisions"}) {
    EXPECT_EQ(view_.rows().findItems(heading, Qt::MatchExactly).size(), 1) << heading;
  }
  picture(view_, "compare");
  view_.setPalette(dark());
  picture(view_, "compare_dark");
}

TEST_F(CompareViewTest, TheChartHasTheCursorOfAllViewsAndBothCurvesBytesThere) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 700);
  offload_a_layer();
  CurvePair& curves = view_.curves();
  EXPECT_EQ(curves.cursor_words(), "");
  const QImage without = curves.grab().toImage();
  const MemoryView& after = document_.planned()->memory;
  state_.set_cursor(after.time[after.peak_at]);
  const QString words = curves.cursor_words();
  EXPECT_TRUE(words.endsWith("now " + bytes_text(after.peak()))) << words.toStdString();
  EXPECT_TRUE(words.contains(": before ")) << words.toStdString();
  EXPECT_NE(curves.grab().toImage(), without);
  QTest::mouseMove(&curves, curves.rect().center());
  ASSERT_TRUE(state_.cursor().has_value());
  const double share =
      static_cast<double>(*state_.cursor()) / static_cast<double>(document_.planned()->end);
  EXPECT_NEAR(share, 0.45, 0.1) << "about the middle of the plot";
}

TEST_F(CompareViewTest, NothingMovedIsAlwaysThereToCompareWith) {
  open(stowage::testing::small_trace());
  view_.compare_with(CompareView::What::resident);
  settle_all();
  ASSERT_NE(row("peak requested"), nullptr);
  EXPECT_EQ(row("peak requested")->difference, "=");
  offload_a_layer();
  EXPECT_EQ(row("peak requested")->sign, -1);
}

// One with a GPU, where an executor's hooks cost the launch thread some microseconds.
TEST_F(CompareViewTest, APlanInWhichNothingMovesIsEqualToIt) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  view_.compare_with(CompareView::What::resident);
  settle_all();
  ASSERT_GE(view_.compared_rows().size(), 10U);
  for (const ComparedRow& same : view_.compared_rows()) {
    EXPECT_EQ(same.difference, "=") << same.name << " " << same.before << " " << same.after;
  }
}

TEST_F(CompareViewTest, ALowerBoundStaysInSightWhileItHolds) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  view_.compare_with(CompareView::What::resident);
  settle_all();
  EXPECT_EQ(row("lower bound"), nullptr) << "nothing was searched";
  planner::PlanRequest request;
  request.budget = 36'000'000'000;
  document_.find_plan(request);
  settle_all();
  ASSERT_NE(row("lower bound"), nullptr);
  const Nanoseconds bound = document_.outcome()->lower_bound_step;
  EXPECT_EQ(lower_bound_of(*document_.current()), bound);
  EXPECT_EQ(row("lower bound")->after, format_time(bound));
  EXPECT_EQ(row("gap to it")->after, format_time(document_.current()->result.step_ns - bound));
  EXPECT_TRUE(row("gap in percent")->after.ends_with(" %"));
  // In a file it is of the recorded machine and of this recording.
  const auto written = [this] {
    return plan_for_writing(*document_.current(), "p.json").lower_bound_step;
  };
  EXPECT_EQ(written(), bound);
  Simulated of_another = *document_.current();
  PlanState state = *of_another.state;
  state.plan.target.trace = "sha256:0";
  of_another.state = std::make_shared<const PlanState>(state);
  EXPECT_EQ(lower_bound_of(of_another), std::nullopt);
  // An edit keeps the budget, and so the bound; another machine or budget does not.
  offload_a_layer();
  EXPECT_EQ(lower_bound_of(*document_.current()), bound);
  const Calibration recorded = document_.trace()->trace.calibration;
  Calibration slower = recorded;
  ASSERT_TRUE(simulator::apply_setting(slower, "link.d2h_gbps", 12));
  document_.set_calibration(slower);
  settle_all();
  EXPECT_EQ(row("lower bound"), nullptr);
  // A plan that is searched on that machine has a bound there, and none in its file.
  document_.find_plan(request);
  settle_all();
  EXPECT_NE(row("lower bound"), nullptr);
  EXPECT_EQ(written(), std::nullopt);
  document_.undo_stack().undo();
  settle_all();
  EXPECT_EQ(row("lower bound"), nullptr);
  document_.restore_calibration();
  settle_all();
  EXPECT_NE(row("lower bound"), nullptr);
  document_.set_budget(37'000'000'000, simulator::PeakKind::active);
  settle_all();
  EXPECT_EQ(row("lower bound"), nullptr);
  document_.undo_stack().undo();
  settle_all();
  EXPECT_NE(row("lower bound"), nullptr);
}

TEST_F(CompareViewTest, WhatIsCountedIsNamedAndTheSameAsInThePlan) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  view_.compare_with(CompareView::What::resident);
  PlanTreeView plan(document_, state_, explanations_);
  planner::PlanRequest request;
  request.budget = 36'000'000'000;
  document_.find_plan(request);
  settle_all();
  ASSERT_NE(row("saved tensors offloaded"), nullptr);
  const QString count = QString::fromStdString(row("saved tensors offloaded")->after);
  EXPECT_TRUE(plan.summary().startsWith(count + " of ")) << plan.summary().toStdString();
  EXPECT_NE(row("copies out for them")->after, count.toStdString()) << "tensors share storages";
  // torchtune copies a storage for each saved tensor that has it.
  document_.try_policy("torchtune");
  settle_all();
  const Trace& trace = document_.trace()->trace;
  const simulator::Schedule& schedule = document_.current()->schedule;
  EXPECT_EQ(row("copies out for them")->after, row("saved tensors offloaded")->after);
  Bytes copied = 0;
  std::set<StorageId> storages;
  Bytes once = 0;
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    const std::string site = trace.string(trace.saved.site[i]);
    if (!site.starts_with("layers.3.") || !schedule.tenant_of[i].valid()) continue;
    copied += testing::offloads_of(schedule)[schedule.tenant_of[i].index()].bytes;
    const StorageId storage = trace.saved.storage[i];
    if (storages.insert(storage).second) once += trace.storages.bytes[storage.index()];
  }
  ASSERT_NE(row("layers.3: saved"), nullptr);
  EXPECT_EQ(row("layers.3: saved")->after, format_bytes(copied));
  EXPECT_GT(copied, once);
  const std::int32_t layer = plan.model().tree()->row_of_layer[static_cast<std::size_t>(
      trace.layers.parent[trace.saved.layer[trace.saved.size() / 2].index()].index())];
  ASSERT_GE(layer, 0);
  EXPECT_EQ(plan.model().tree()->rows[static_cast<std::size_t>(layer)].bytes, once)
      << "the size that Plan shows";
}

TEST_F(CompareViewTest, ASecondPlanIsReadFromItsFile) {
  open(stowage::testing::small_trace());
  offload_a_layer();
  const QTemporaryDir folder;
  const QString file = folder.filePath("other.json");
  ASSERT_TRUE(write_file(file.toStdString(),
                         simulator::plan_to_json(plan_for_writing(*document_.current(), ""))));
  document_.undo_stack().undo();
  settle_all();
  view_.compare_with_file(file);
  settle_all();
  ASSERT_EQ(view_.reason(), "");
  ASSERT_NE(row("peak requested"), nullptr);
  EXPECT_EQ(row("peak requested")->sign, 1) << "now nothing is offloaded";
  EXPECT_EQ(view_.rows().headerItem()->text(1), "other.json");
}

TEST_F(CompareViewTest, ASecondTraceIsComparedWithThisOne) {
  open(sample("gpt2-fp32-h200"));
  view_.compare_with_file(sample("gpt2-bf16-h200"));
  settle_all();
  ASSERT_EQ(view_.reason(), "");
  EXPECT_EQ(row("peak requested")->sign, 1) << "fp32 takes more than bf16";
  const auto& rows = view_.compared_rows();
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(),
                          [](const ComparedRow& one) { return one.section.starts_with("trace"); }));
}

TEST_F(CompareViewTest, WhatWasMeasuredIsComparedWithWhatWasPredicted) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("run.json");
  const QString trace = sample("mlp-l6-fp32-cpu");
  open(trace);
  const QString plan = folder.filePath("p.json");
  ASSERT_TRUE(document_.save_plan(plan));
  ASSERT_TRUE(write_file(
      file.toStdString(),
      "{\"schema\":\"stowage-execute/1\",\"files\":{\"plan\":\"" + plan.toStdString() +
          "\",\"trace\":\"" + trace.toStdString() +
          "\"},\"measured\":{\"peak_requested_bytes\":1100,\"step_ns\":2000000},"
          "\"predicted\":{\"peak_requested_bytes\":1000,\"step_ns\":2000000},\"steps\":[]}"));
  open(file);
  ASSERT_TRUE(document_.measured().has_value());
  ASSERT_NE(row("peak requested"), nullptr) << "shown by itself";
  EXPECT_EQ(row("peak requested")->difference, "+100 B");
  EXPECT_EQ(row("peak requested")->relative, "+10.0 %");
  EXPECT_EQ(row("step")->difference, "=");
}

}  // namespace
}  // namespace stowage::gui
