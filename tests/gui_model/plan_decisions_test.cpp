// Plans that compute again, in the document: opened, edited, taken back, written.
#include "gui/model/plan_decisions.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <algorithm>
#include <fstream>

#include "gui/model/command_text.h"
#include "gui/model/comparison.h"
#include "gui/model/details.h"
#include "gui/model/export_step.h"
#include "gui/model/plan_document.h"
#include "report/simulation.h"
#include "simulator/plan/plan_json.h"
#include "tests/gui_model/spin.h"
#include "traces/file_io.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

using simulator::Decision;

constexpr const char* kPlan = R"({"schema": "stowage-plan/1",
  "budget": {"device": "60%"},
  "saved": [{"site": "layers.[6-11].mlp#8", "do": "recompute", "by": "ops"},
            {"site": "layers.0.attn#*", "do": "offload"},
            {"site": "layers.[3-5]#in0", "do": "offload"},
            {"site": "*", "do": "keep"}],
  "recompute": [{"segment": "layers.[3-5]"}, {"segment": "layers.[1-2]", "each": "run"}]})";

class PlanDecisionsTest : public ::testing::Test {
 protected:
  PlanDecisionsTest() {
    QObject::connect(&document_, &PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
    open(QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz"));
  }
  void settle() {
    ASSERT_TRUE(stowage::testing::spin_until([this] {
      return !document_.loading().busy() && !document_.simulating().busy() &&
             !document_.searching().busy();
    }));
  }
  void open(const QString& file) {
    document_.open(file);
    settle();
  }
  void open_plan(const char* text = kPlan) {
    const QString file = folder_.filePath(QStringLiteral("again.json"));
    std::ofstream(file.toStdString()) << text;
    open(file);
    ASSERT_TRUE(errors_.empty()) << errors_.front();
  }
  const Trace& trace() { return document_.trace()->trace; }
  const PlanDecisions& decisions() { return *document_.current()->decisions; }
  const simulator::ReplayResult& result() { return document_.current()->result; }
  SavedId row(const std::string& site) {
    for (std::size_t i = 0; i < trace().saved.size(); ++i) {
      if (trace().string(trace().saved.site[i]) == site) return SavedId(i);
    }
    ADD_FAILURE() << site;
    return {};
  }
  LayerId layer(const std::string& name) {
    for (std::size_t i = 0; i < trace().layers.size(); ++i) {
      if (trace().string(trace().layers.name[i]) == name) return LayerId(i);
    }
    ADD_FAILURE() << name;
    return {};
  }
  void expect_same(const PlanDecisions& before) {
    for (std::size_t i = 0; i < before.saved.size(); ++i) {
      EXPECT_EQ(decisions().saved[i].decision, before.saved[i].decision)
          << trace().string(trace().saved.site[i]);
    }
    EXPECT_EQ(decisions().parameters, before.parameters);
    const auto sorted = [](std::vector<std::string> names) {
      std::sort(names.begin(), names.end());
      return names;
    };
    EXPECT_EQ(sorted(decisions().segments), sorted(before.segments));
    ASSERT_EQ(decisions().inputs.size(), before.inputs.size());
    for (const auto& [site, input] : before.inputs) {
      EXPECT_EQ(decisions().inputs.at(site).decision, input.decision) << site;
    }
  }

  QTemporaryDir folder_;
  PlanDocument document_;
  std::vector<std::string> errors_;
};

TEST_F(PlanDecisionsTest, APlanThatComputesAgainOpensAsTheCommandReplaysIt) {
  open_plan();
  const Simulated& now = *document_.current();
  ASSERT_NE(now.rows, nullptr);
  EXPECT_GT(now.step_trace().events.size(), trace().events.size());
  EXPECT_EQ(now.detail.time.size(), now.step_trace().events.size());
  const auto command = report::simulate(document_.trace()->index, now.plan(), "");
  ASSERT_TRUE(command) << command.error().text();
  EXPECT_EQ(result().step_ns, command->result.step_ns);
  EXPECT_EQ(result().peak_requested, command->result.peak_requested);
  EXPECT_EQ(result().host_bytes, command->result.host_bytes);

  EXPECT_TRUE(decisions().saved_is(row("layers.7.mlp#8"), Decision::recompute));
  EXPECT_EQ(decisions().segment(row("layers.7.mlp#8")), -1);
  const std::int32_t segment = decisions().segment(row("layers.4.mlp#1"));
  ASSERT_GE(segment, 0);
  EXPECT_EQ(decisions().segments[static_cast<std::size_t>(segment)], "layers.4");
  EXPECT_TRUE(decisions().saved_is(row("layers.0.attn#1"), Decision::offload));
  EXPECT_EQ(decisions().inputs.at("layers.3#in0").decision, Decision::offload);
  const auto& names = decisions().segments;
  EXPECT_EQ(std::count(names.begin(), names.end(), "layers.1..layers.2"), 1);
}

TEST_F(PlanDecisionsTest, DecisionsGoToTheStepsRowsAndBack) {
  open_plan();
  const simulator::StepIndex& index = *document_.current()->index;
  const PlanDecisions before = decisions();
  const PlanDecisions back = in_recording(index, document_.trace()->calls, in_step(index, before));
  EXPECT_EQ(back.saved, before.saved);
  EXPECT_EQ(back.segments, before.segments);
  EXPECT_EQ(back.segment_of, before.segment_of);
  EXPECT_EQ(back.inputs, before.inputs);
}

TEST_F(PlanDecisionsTest, AnEditedPlanIsWrittenAsItReadsBack) {
  open_plan();
  ASSERT_TRUE(document_.set_decision({row("layers.8.attn#1")}, Decision::offload));
  settle();
  ASSERT_TRUE(document_.set_recompute({layer("layers.9.attn")}, {row("layers.0.mlp#8")}));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  const PlanDecisions before = decisions();
  const simulator::ReplayResult replayed = result();
  const QString file = folder_.filePath(QStringLiteral("edited.json"));
  ASSERT_TRUE(document_.save_plan(file).ok());
  open(file);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(document_.state()->decisions, nullptr) << "these are the file's rules";
  expect_same(before);
  EXPECT_EQ(result().step_ns, replayed.step_ns);
  EXPECT_EQ(result().peak_requested, replayed.peak_requested);
  EXPECT_EQ(result().host_bytes, replayed.host_bytes);
}

TEST_F(PlanDecisionsTest, ALayerRunsAgainAtOnceAndUndoTakesItBack) {
  const Bytes resident = result().peak_requested;
  const Nanoseconds step = result().step_ns;
  ASSERT_TRUE(document_.set_recompute({layer("layers.2"), layer("layers.3")}, {}));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_LT(result().peak_requested, resident);
  EXPECT_GT(result().step_ns, step);
  EXPECT_TRUE(decisions().runs_again(row("layers.2.mlp#8")));
  EXPECT_EQ(document_.undo_stack().undoText(), "Recompute 2 layers");
  EXPECT_FALSE(document_.set_recompute({layer("layers.2"), layer("layers.3")}, {}))
      << "changes nothing";

  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(result().peak_requested, resident);
  EXPECT_EQ(document_.current()->rows, nullptr);
  document_.undo_stack().redo();
  settle();
  EXPECT_LT(result().peak_requested, resident);
}

TEST_F(PlanDecisionsTest, WhatOpsCannotMakeIsToldWithTheReasonAndThePlanStays) {
  ASSERT_TRUE(document_.set_recompute({}, {row("layers.0.mlp#8")}));
  settle();
  const SimulatedPtr before = document_.current();
  const int edits = document_.undo_stack().count();
  // The first saved tensor of a layer is the residual, which a product with parameters makes.
  const Prices prices(document_.trace());
  SavedId cannot;
  for (std::size_t i = 0; i < trace().saved.size() && !cannot.valid(); ++i) {
    const Price price = prices.of(SavedId(i));
    if (!price.compute && price.out) cannot = SavedId(i);
  }
  ASSERT_TRUE(cannot.valid());
  ASSERT_TRUE(document_.set_recompute({}, {cannot}));
  settle();
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_NE(errors_[0].find(trace().string(trace().saved.site[cannot.index()])), std::string::npos)
      << errors_[0];
  EXPECT_EQ(errors_[0].find('\n'), std::string::npos);
  EXPECT_EQ(document_.undo_stack().count(), edits);
  EXPECT_FALSE(document_.undo_stack().canRedo());
  EXPECT_EQ(document_.state(), before->state);
  EXPECT_EQ(result().step_ns, before->result.step_ns);
  EXPECT_TRUE(decisions().runs_again(row("layers.0.mlp#8")));
}

TEST_F(PlanDecisionsTest, KeepingARowEndsItsSegmentAloneAndNotThoseBesideIt) {
  open_plan();
  ASSERT_TRUE(document_.set_decision({row("layers.1.mlp#1")}, Decision::offload));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  const auto& names = decisions().segments;
  EXPECT_EQ(std::count(names.begin(), names.end(), "layers.1..layers.2"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "layers.2"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "layers.1"), 0);
  EXPECT_TRUE(decisions().saved_is(row("layers.1.mlp#1"), Decision::offload));
  EXPECT_TRUE(decisions().runs_again(row("layers.4.mlp#1")));
}

// Groups of three layers run again, and each layer behind its group's run.
TEST_F(PlanDecisionsTest, SegmentsWithinSegmentsAreEditedAndWrittenBack) {
  open_plan(R"({"schema": "stowage-plan/1",
    "saved": [{"site": "layers.3#in0", "do": "offload"}, {"site": "*", "do": "keep"}],
    "recompute": [{"segment": "layers.[0-5]", "each": 3,
                   "within": [{"segment": "layers.[0-5]"}]}]})");
  const auto count = [&](const char* name) {
    return std::count(decisions().segments.begin(), decisions().segments.end(), name);
  };
  EXPECT_EQ(decisions().segments.size(), 8U);
  const std::int32_t segment = decisions().segment(row("layers.4.mlp#1"));
  ASSERT_GE(segment, 0);
  EXPECT_EQ(decisions().segments[static_cast<std::size_t>(segment)], "layers.4");

  // Of a group that ends, the layers that are left run as before: once each.
  ASSERT_TRUE(document_.set_decision({row("layers.1.mlp#1")}, Decision::offload));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(count("layers.0..layers.2"), 0);
  EXPECT_EQ(count("layers.0"), 1);
  EXPECT_EQ(count("layers.1"), 0);
  EXPECT_EQ(count("layers.2"), 1);
  EXPECT_EQ(count("layers.3..layers.5"), 1);
  EXPECT_EQ(count("layers.3"), 1);

  const PlanDecisions before = decisions();
  const simulator::ReplayResult replayed = result();
  const QString file = folder_.filePath(QStringLiteral("nested.json"));
  ASSERT_TRUE(document_.save_plan(file).ok());
  open(file);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  expect_same(before);
  EXPECT_EQ(result().step_ns, replayed.step_ns);
  EXPECT_EQ(result().peak_requested, replayed.peak_requested);
}

TEST_F(PlanDecisionsTest, AnotherBudgetDoesNotMakeTheStepAnew) {
  open_plan();
  const auto index = document_.current()->index;
  ASSERT_TRUE(document_.set_budget(5'000'000'000, simulator::PeakKind::active));
  settle();
  EXPECT_EQ(document_.current()->index, index);
}

TEST_F(PlanDecisionsTest, ASearchMayRecompute) {
  planner::PlanRequest request;
  request.budget = document_.trace()->resident_cached.peak_active * 6 / 10;
  document_.find_plan(request);
  ASSERT_TRUE(stowage::testing::spin_until([this] { return !document_.searching().busy(); }));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_NE(document_.current()->rows, nullptr);
  EXPECT_EQ(result().step_ns, document_.outcome()->predicted.step_ns);
  EXPECT_TRUE(document_.current()->device_kept);
}

TEST_F(PlanDecisionsTest, DetailsSayWhatRunsAgainAndWhatEitherDecisionCosts) {
  open_plan();
  const Explained explained(document_.current());
  const StepRows& rows = *document_.current()->rows;
  const auto text = [&](const Selection& of) { return details_text(details_of(explained, of)); };
  const Selection saved = rows.in_step({Selection::Kind::saved, row("layers.7.mlp#8").value});
  EXPECT_NE(text(saved).find("Decision: recompute, by ops"), std::string::npos) << text(saved);
  EXPECT_NE(text(saved).find("Made again: "), std::string::npos);
  EXPECT_NE(text(saved).find(" of compute\n  Offload costs: "), std::string::npos);
  const Selection with = rows.in_step({Selection::Kind::saved, row("layers.4.mlp#1").value});
  EXPECT_NE(text(with).find("Decision: recompute, with layers.4"), std::string::npos);

  std::int32_t again = -1;
  for (std::size_t i = 0; i < rows.step().trace().ops.size() && again < 0; ++i) {
    if (rows.is_again(OpId(i))) again = static_cast<std::int32_t>(i);
  }
  ASSERT_GE(again, 0);
  const std::string op = text({Selection::Kind::op, again});
  EXPECT_NE(op.find("Runs again: in backward: recompute"), std::string::npos) << op;
  EXPECT_NE(op.find("Original: "), std::string::npos);
  const OpId original = rows.original_of(OpId(again));
  EXPECT_NE(text({Selection::Kind::op, original.value}).find("Runs again as: "), std::string::npos);
  const std::string whole = text({Selection::Kind::layer, layer("layers.4").value});
  // Those that could move are counted, as the plan tree does.
  EXPECT_NE(whole.find("Saved tensors: 16, 0 offloaded, 16 recomputed; 9 more are older than the "
                       "step and stay\n"),
            std::string::npos)
      << whole;
}

TEST_F(PlanDecisionsTest, PricesSayWhyOtherwise) {
  const Prices prices(document_.trace());
  const Price op = prices.of(row("layers.7.mlp#8"));
  ASSERT_TRUE(op.compute.has_value()) << op.why_not;
  EXPECT_GT(*op.compute, 0);
  EXPECT_GT(*op.out, *op.compute) << "the link is slower than an element-wise op";
  const Price whole = prices.of(layer("layers.7"));
  ASSERT_TRUE(whole.compute.has_value()) << whole.why_not;
  EXPECT_GT(*whole.compute, *op.compute);
  EXPECT_GT(*whole.out, *op.out);
  const Price none = prices.of(LayerId(0));
  EXPECT_FALSE(none.compute.has_value());
  EXPECT_TRUE(recompute_text(none).starts_with("not possible: ")) << recompute_text(none);
}

TEST_F(PlanDecisionsTest, ExportsCommandsAndComparisonsAreOfTheStepThatIsShown) {
  open_plan();
  const Simulated& now = *document_.current();
  for (const ExportKind kind :
       {ExportKind::svg, ExportKind::csv_memory, ExportKind::csv_timeline, ExportKind::csv_stalls,
        ExportKind::csv_storages, ExportKind::chrome, ExportKind::plan}) {
    const std::string file = folder_.filePath(QStringLiteral("export")).toStdString();
    ASSERT_TRUE(export_step(now, false, kind, file).ok()) << static_cast<int>(kind);
    const auto text = read_file(file);
    ASSERT_TRUE(text);
    EXPECT_GT(text->size(), 100U) << static_cast<int>(kind);
  }
  EXPECT_EQ(command_text(now, "p.json", trace().calibration).find("stowage simulate "), 0U);
  const auto facts = facts_of(now);
  const auto fact = [&](const std::string& name) -> std::int64_t {
    for (const report::Fact& each : facts) {
      if (each.name == name) return std::get<std::int64_t>(each.value);
    }
    ADD_FAILURE() << name;
    return 0;
  };
  std::int64_t again = 0;
  for (std::size_t i = 0; i < trace().saved.size(); ++i) {
    again += decisions().runs_again(SavedId(i)) ? 1 : 0;
  }
  EXPECT_EQ(fact("saved_tensors_recomputed"), again);
  EXPECT_GT(fact("recompute_ns"), 0);
  EXPECT_GT(fact("freed_by_recompute_bytes"), 0);

  // A policy whose plan is of layers alone.
  document_.try_policy("checkpoint");
  ASSERT_TRUE(stowage::testing::spin_until([this] { return !document_.searching().busy(); }));
  settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(command_text(*document_.current(), "", trace().calibration).find("stowage inspect"),
            std::string::npos);
}

// Layers that come and go leave the modes of the others as they are.
TEST_F(PlanDecisionsTest, EachLayerKeepsTheModeInWhichItStreams) {
  using simulator::StreamMode;
  open_plan(R"({"schema": "stowage-plan/1", "parameters": {
    "shards": [["layers.3"], ["layers.4"], ["layers.5"]],
    "stream": ["forward", "backward", true]}})");
  const std::vector<StreamingLayer> layers = streaming_layers_of(trace());
  const auto streaming = [&](const std::string& name) {
    const auto at = std::find_if(layers.begin(), layers.end(), [&](const StreamingLayer& each) {
      return trace().string(trace().layers.name[each.layer.index()]).starts_with(name);
    });
    EXPECT_NE(at, layers.end()) << name;
    return *at;
  };
  const auto modes = [&](const simulator::Decisions& of) {
    std::vector<StreamMode> list;
    for (const char* name : {"layers.3", "layers.4", "layers.5", "layers.6"}) {
      list.push_back(of.parameters.mode_of(streaming(name).storages.front()));
    }
    return list;
  };
  const auto off = StreamMode::off;
  const auto forward = StreamMode::forward;
  const auto all = StreamMode::always;
  EXPECT_EQ(modes(decisions()), (std::vector{forward, StreamMode::backward, all, off}));

  std::vector<StreamingLayer> fourth;
  for (const StreamingLayer& each : layers) {
    const std::string& name = trace().string(trace().layers.name[each.layer.index()]);
    if (name.starts_with("layers.4")) fourth.push_back(each);
  }
  ASSERT_TRUE(document_.set_streaming(fourth, false));
  settle();
  EXPECT_EQ(modes(decisions()), (std::vector{forward, off, all, off}));
  ASSERT_TRUE(document_.set_streaming({streaming("layers.6")}, true));
  settle();
  const std::vector<StreamMode> edited = {forward, off, all, forward};
  EXPECT_EQ(modes(decisions()), edited);

  const auto again = simulator::resolve(trace(), plan_for_writing(*document_.current(), ""));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(modes(*again), edited) << "as the plan is written";
  document_.undo_stack().undo();
  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(modes(decisions()), (std::vector{forward, StreamMode::backward, all, off}));
}

}  // namespace
}  // namespace stowage::gui
