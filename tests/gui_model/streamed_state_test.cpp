// Optimizer state that streams, in the document: decided, taken back, opened, edited elsewhere,
// written.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <algorithm>
#include <fstream>

#include "gui/model/command_text.h"
#include "gui/model/comparison.h"
#include "gui/model/decision_kinds.h"
#include "gui/model/details.h"
#include "gui/model/plan_document.h"
#include "gui/model/step_picture.h"
#include "report/simulation.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/plan_json.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/gui_model/spin.h"
#include "tests/support/micro_trace.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

using simulator::Decision;
using simulator::OptimizerRule;
using simulator::StatePlace;

constexpr const char* kSecondLayer = R"({"schema": "stowage-plan/1",
  "optimizer": [{"layer": "layers.1", "state": "stream"}]})";

// Layers a and b, in b a layer c; each has a parameter, and that a piece of state: 300, 500 and 700
// bytes.
stowage::testing::MicroTrace two_updates() {
  stowage::testing::MicroTrace t;
  const StorageId a = t.existing(100);
  const StorageId b = t.existing(200);
  const StorageId c = t.existing(400);
  t.state_of(a, 300);
  t.state_of(b, 500);
  t.state_of(c, 700);
  const auto use = [&](const char* layer, StorageId parameter) {
    t.begin_layer(layer);
    t.begin_op();
    t.read(parameter);
    t.run(1000).end_op();
  };
  use("a", a);
  t.end_layer("a");
  use("b", b);
  use("b.c", c);
  t.end_layer("b.c");
  t.end_layer("b");
  t.backward();
  t.optimizer();
  for (const StorageId parameter : {a, b, c}) t.update(parameter, 100);
  return t;
}

class StreamedStateTest : public ::testing::Test {
 protected:
  StreamedStateTest() {
    QObject::connect(&document_, &PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
    open(
        QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l2-adamw-bf16-h100.trace.json.gz"));
  }
  ~StreamedStateTest() override { EXPECT_TRUE(errors_.empty()) << errors_.front(); }

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
  void open_plan(const char* text) {
    const QString file = folder_.filePath(QStringLiteral("opened.json"));
    std::ofstream(file.toStdString()) << text;
    open(file);
    ASSERT_TRUE(errors_.empty()) << errors_.front();
  }
  const Simulated& now() { return *document_.current(); }
  const Trace& trace() { return document_.trace()->trace; }
  Bytes peak() { return now().result.peak_requested; }
  std::string name(const StreamingLayer& layer) {
    return trace().string(trace().layers.name[layer.layer.index()]);
  }
  // Names of the layers whose state streams.
  std::vector<std::string> streaming(const simulator::Decisions& decisions) {
    std::vector<std::string> names;
    for (const StreamingLayer& layer : streaming_state_of(trace())) {
      if (state_place(decisions, layer) == StatePlace::stream) names.push_back(name(layer));
    }
    return names;
  }
  std::vector<std::string> streaming() { return streaming(*now().decisions); }
  std::vector<std::string> scheduled() {
    std::vector<std::string> names;
    for (const simulator::Tenant& tenant : now().schedule.tenants) {
      if (tenant.kind == &simulator::kOptimizerState) {
        names.push_back(tenant.kind->place(now().step_trace(), tenant));
      }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  std::vector<StreamingLayer> inside(const std::string& layer) {
    std::vector<StreamingLayer> found;
    for (const StreamingLayer& each : streaming_state_of(trace())) {
      if (name(each).starts_with(layer)) found.push_back(each);
    }
    EXPECT_FALSE(found.empty()) << layer;
    return found;
  }
  // What the plan that is written says, read back from its text.
  std::vector<std::string> written() {
    const simulator::Plan plan = plan_for_writing(now(), "");
    const auto read = simulator::plan_from_json(simulator::plan_to_json(plan), "written.json");
    EXPECT_TRUE(read.ok()) << read.error().text();
    auto resolved = simulator::resolve_optimizer(trace(), read->optimizer);
    EXPECT_TRUE(resolved.ok()) << resolved.error().text();
    simulator::Decisions decisions;
    decisions.optimizer = std::move(resolved).value();
    return streaming(decisions);
  }

  QTemporaryDir folder_;
  PlanDocument document_;
  std::vector<std::string> errors_;
};

using Names = std::vector<std::string>;
const Names kSecond{"layers.1.attn", "layers.1.mlp"};
const std::vector<OptimizerRule> kSecondRule{{"layers.1", StatePlace::stream}};

TEST_F(StreamedStateTest, StreamsAndStaysAndThePeakFallsByItsBytes) {
  const Bytes resident = peak();
  const std::vector<StreamingLayer> layers = streaming_state_of(trace());
  Bytes bytes = 0;
  for (const StreamingLayer& layer : layers) bytes += layer.bytes;
  EXPECT_EQ(bytes, 2 * std::int64_t{107'122'176}) << "two moments of each parameter";
  ASSERT_TRUE(document_.set_state_place(layers, StatePlace::stream));
  settle();
  EXPECT_EQ(peak(), resident - bytes);
  EXPECT_EQ(streaming().size(), layers.size());
  EXPECT_EQ(document_.undo_stack().undoText(), "Stream the optimizer state of 6 layers");

  ASSERT_TRUE(document_.set_state_place(inside("layers.1"), StatePlace::device));
  settle();
  EXPECT_EQ(streaming().size(), layers.size() - 2);
  ASSERT_TRUE(document_.set_state_place(layers, StatePlace::device));
  settle();
  EXPECT_EQ(peak(), resident);
}

TEST_F(StreamedStateTest, AnEditIsTakenBackAndMadeAgain) {
  const Bytes resident = peak();
  ASSERT_TRUE(document_.set_state_place(inside("layers.1"), StatePlace::stream));
  settle();
  EXPECT_EQ(streaming(), kSecond);
  EXPECT_EQ(scheduled(), kSecond);
  const Bytes edited = peak();
  EXPECT_EQ(edited, resident - 9'455'616 - 18'895'872);
  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(streaming(), Names());
  EXPECT_EQ(scheduled(), Names());
  EXPECT_EQ(peak(), resident);
  document_.undo_stack().redo();
  settle();
  EXPECT_EQ(streaming(), kSecond);
  EXPECT_EQ(peak(), edited);
}

TEST_F(StreamedStateTest, AnEditThatChangesNothingIsNone) {
  EXPECT_FALSE(document_.set_state_place(inside("layers.1"), StatePlace::device));
  EXPECT_FALSE(document_.set_state_place({}, StatePlace::stream));
  // Rules by which all of it stays are as good as none.
  open_plan(R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "state": "device"}]})");
  EXPECT_FALSE(document_.set_state_place(inside("layers.1"), StatePlace::device));
  open_plan(kSecondLayer);
  EXPECT_FALSE(document_.set_state_place(inside("layers.1"), StatePlace::stream));
  EXPECT_EQ(document_.undo_stack().count(), 0);
}

// A rule may name a layer inside of those that the tree has rows for.
TEST_F(StreamedStateTest, ALayerOfWhichSomeStreamsIsLeftAsItIs) {
  stowage::testing::MicroTrace t = two_updates();
  document_.open_trace(t.finish(), QStringLiteral("made.trace.json"));
  settle();
  open_plan(R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "b.c", "state": "stream"}]})");
  const std::vector<StreamingLayer> layers = streaming_state_of(trace());
  ASSERT_EQ(layers.size(), 2U) << "c is decided about with b";
  EXPECT_EQ(streaming(), Names({"b"}));
  ASSERT_EQ(scheduled(), Names({"b.c"}));
  ASSERT_TRUE(document_.set_state_place(layers, StatePlace::stream));
  settle();
  EXPECT_EQ(scheduled(), Names({"a", "b.c"}));
  EXPECT_EQ(written(), Names({"a", "b"}));
}

TEST_F(StreamedStateTest, APlanWithARuleOpensAsTheCommandReplaysIt) {
  const Bytes resident = peak();
  open_plan(kSecondLayer);
  EXPECT_EQ(streaming(), kSecond);
  EXPECT_EQ(scheduled(), kSecond);
  EXPECT_LT(peak(), resident);
  const auto command = report::simulate(document_.trace()->index, now().plan(), "");
  ASSERT_TRUE(command) << command.error().text();
  EXPECT_EQ(now().result.step_ns, command->result.step_ns);
  EXPECT_EQ(peak(), command->result.peak_requested);
  EXPECT_EQ(command_text(now(), "", trace().calibration).find("stowage simulate "), 0U)
      << command_text(now(), "", trace().calibration);
}

TEST_F(StreamedStateTest, EditsElsewhereKeepTheRule) {
  open_plan(kSecondLayer);
  const auto expect_kept = [&](const char* edit) {
    settle();
    EXPECT_EQ(streaming(), kSecond) << edit;
    EXPECT_EQ(scheduled(), kSecond) << edit;
    EXPECT_EQ(written(), kSecond) << edit;
    EXPECT_EQ(plan_for_writing(now(), "").optimizer, kSecondRule) << edit;
  };
  ASSERT_TRUE(document_.set_decision({SavedId(0)}, Decision::offload));
  expect_kept("a saved tensor");
  ASSERT_TRUE(document_.set_budget(2'000'000'000, simulator::PeakKind::requested));
  expect_kept("the budget");
  ASSERT_TRUE(document_.set_streaming({streaming_layers_of(trace())[1]}, true));
  expect_kept("parameters");
  ASSERT_TRUE(document_.set_placement(now().plan().placement == simulator::PlacementMode::planned
                                          ? simulator::PlacementMode::caching
                                          : simulator::PlacementMode::planned));
  expect_kept("the memory");
  EXPECT_EQ(document_.undo_stack().count(), 4);
}

// Its rows are others than the recording's.
TEST_F(StreamedStateTest, AStepThatComputesAgainStreamsItToo) {
  open_plan(R"({"schema": "stowage-plan/1", "recompute": [{"segment": "layers.0"}],
    "optimizer": [{"layer": "layers.1", "state": "stream"}]})");
  ASSERT_NE(now().rows, nullptr);
  EXPECT_EQ(streaming(), kSecond);
  EXPECT_EQ(scheduled(), kSecond);
  const PlanDecisions before = *now().decisions;
  const PlanDecisions back =
      in_recording(*now().index, document_.trace()->calls, in_step(*now().index, before));
  EXPECT_EQ(back.optimizer, before.optimizer);

  ASSERT_TRUE(document_.set_state_place(inside("head"), StatePlace::stream));
  settle();
  const Names edited{"layers.1.attn", "layers.1.mlp", "head"};
  EXPECT_EQ(streaming(), edited);
  EXPECT_EQ(scheduled(), Names({"head", "layers.1.attn", "layers.1.mlp"}));
  EXPECT_EQ(written(), edited);
  // Edits from here on make another step of the same decisions.
  ASSERT_TRUE(document_.set_recompute({inside("layers.1").front().layer}, {}));
  settle();
  EXPECT_EQ(streaming(), edited);
  EXPECT_EQ(written(), edited);
}

TEST_F(StreamedStateTest, AnEditedPlanIsSavedAndOpenedAgain) {
  ASSERT_TRUE(document_.set_state_place(inside("layers.1"), StatePlace::stream));
  settle();
  const QString file = folder_.filePath("saved.json");
  const Status saved = document_.save_plan(file);
  ASSERT_TRUE(saved) << saved.error().text();
  const Bytes edited = peak();
  const Nanoseconds step = now().result.step_ns;
  document_.close();
  open(file);
  ASSERT_NE(document_.current(), nullptr);
  EXPECT_EQ(now().plan().optimizer, kSecondRule);
  EXPECT_EQ(streaming(), kSecond);
  EXPECT_EQ(peak(), edited);
  EXPECT_EQ(now().result.step_ns, step);
  // Opened and saved without an edit, it is the same.
  ASSERT_TRUE(document_.save_plan(folder_.filePath("again.json")));
  const auto first = read_file(file.toStdString());
  const auto again = read_file(folder_.filePath("again.json").toStdString());
  ASSERT_TRUE(first && again);
  EXPECT_EQ(*first, *again);
}

TEST_F(StreamedStateTest, APlanThatASearchFindsWithItCanBeEdited) {
  planner::PlanRequest request;
  request.budget = 1'400'000'000;  // less than what parameters and saved tensors can give
  request.budget_text = "1.4GB";
  request.budget_on = simulator::PeakKind::requested;
  document_.find_plan(request);
  settle();
  ASSERT_TRUE(document_.outcome() && document_.outcome()->feasible());
  const Names found = streaming();
  ASSERT_FALSE(found.empty());
  ASSERT_TRUE(document_.set_streaming(streaming_layers_of(trace()), true) ||
              document_.set_streaming(streaming_layers_of(trace()), false));
  settle();
  EXPECT_EQ(streaming(), found);
  EXPECT_EQ(written(), found);
}

TEST_F(StreamedStateTest, ItsCopiesAreCalledByItsNameAndLayer) {
  open_plan(kSecondLayer);
  const Explained explained(document_.current());
  const auto& transfers = now().detail.transfers;
  ASSERT_EQ(transfers.size(), 48U) << "each of 24 pieces comes and goes once";
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Selection copy{Selection::Kind::transfer, static_cast<std::int32_t>(i)};
    const std::string text = details_text(details_of(explained, copy));
    EXPECT_NE(text.find("Of: optimizer state of layers.1."), std::string::npos) << text;
  }
}

TEST_F(StreamedStateTest, CompareCountsItsPiecesApartFromParameters) {
  open_plan(kSecondLayer);
  const auto fact = [&](const std::string& name) -> std::int64_t {
    for (const report::Fact& each : facts_of(now())) {
      if (each.name == name) return std::get<std::int64_t>(each.value);
    }
    ADD_FAILURE() << name;
    return -1;
  };
  // Two moments of each parameter: of two norms, two products of attn, two of mlp, with biases.
  EXPECT_EQ(fact("optimizer_state_streamed"), 24);
  EXPECT_EQ(fact("parameters_streamed"), 0);
  EXPECT_EQ(fact("layers.1: optimizer_state_bytes"), 9'455'616 + 18'895'872);
  EXPECT_EQ(fact("layers.1: parameters_bytes"), 0);
  EXPECT_EQ(fact("layers.0: optimizer_state_bytes"), 0);
}

// Nothing in the window decides about gradients yet; what a plan says of them it keeps.
TEST_F(StreamedStateTest, GradientsStayAsThePlanHasThem) {
  open_plan(
      R"({"schema": "stowage-plan/1", "gradients": [{"layer": "layers.1", "place": "host"}]})");
  const std::vector<simulator::GradientRule> rules = now().plan().gradients;
  ASSERT_EQ(rules.size(), 1U);
  const Bytes before = peak();
  ASSERT_TRUE(document_.set_streaming(streaming_layers_of(trace()), true));
  settle();
  EXPECT_LE(peak(), before);
  const QString file = folder_.filePath("saved.json");
  ASSERT_TRUE(document_.save_plan(file));
  const auto text = read_file(file.toStdString());
  ASSERT_TRUE(text);
  const auto plan = simulator::plan_from_json(*text, "saved.json");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->gradients, rules);
  EXPECT_TRUE(plan->parameters.has_value());
  const auto on_host = [&] {
    for (const report::Fact& each : facts_of(now())) {
      if (each.name == "gradients_on_host") return std::get<std::int64_t>(each.value);
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(on_host(), 12);
}

// The host updates a layer, or all; the peak falls by their state and more, and the plan says so.
TEST_F(StreamedStateTest, TheHostUpdatesWhatIsDecidedSo) {
  const Bytes resident = peak();
  const std::vector<StreamingLayer> second = inside("layers.1");
  ASSERT_TRUE(document_.set_state_place(second, StatePlace::host));
  EXPECT_EQ(document_.undo_stack().undoText(), "Update 2 layers on the host");
  settle();
  EXPECT_LE(peak(), resident - 9'455'616 - 18'895'872);
  EXPECT_EQ(now().detail.host_updates.size(), 12U);
  EXPECT_FALSE(document_.set_state_place(second, StatePlace::host));
  const auto places = [&](const simulator::Decisions& decisions) {
    std::vector<StatePlace> all;
    for (const StreamingLayer& layer : streaming_state_of(trace())) {
      all.push_back(state_place(decisions, layer));
    }
    return all;
  };
  const std::vector<StatePlace> wanted = places(*now().decisions);
  EXPECT_EQ(std::count(wanted.begin(), wanted.end(), StatePlace::host), 2);
  const simulator::Plan plan = plan_for_writing(now(), "");
  auto resolved = simulator::resolve_optimizer(trace(), plan.optimizer);
  ASSERT_TRUE(resolved.ok()) << resolved.error().text();
  simulator::Decisions read;
  read.optimizer = std::move(resolved).value();
  EXPECT_EQ(places(read), wanted);

  // Streamed, its state is wanted on the device again.
  ASSERT_TRUE(document_.set_state_place(second, StatePlace::stream));
  settle();
  EXPECT_EQ(now().detail.host_updates.size(), 0U);
  EXPECT_EQ(streaming(), kSecond);
  ASSERT_TRUE(document_.set_state_place(streaming_state_of(trace()), StatePlace::host));
  settle();
  EXPECT_EQ(streaming(), Names());
  EXPECT_GT(now().detail.host_updates.size(), 12U);
  for (int edits = 0; edits < 3; ++edits) document_.undo_stack().undo();
  settle();
  EXPECT_EQ(peak(), resident);
}

// The updates have a lane of their own, and each says what it is.
TEST_F(StreamedStateTest, UpdatesOnTheHostStayAsThePlanHasThem) {
  EXPECT_EQ(planned_view(now())->lanes.size(), 6U);
  open_plan(
      R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "state": "host", "step": "host"}]})");
  const std::vector<OptimizerRule> rules = now().plan().optimizer;
  ASSERT_EQ(rules, (std::vector<OptimizerRule>{{"*", StatePlace::host}}));
  const std::size_t updates = now().detail.host_updates.size();
  ASSERT_GT(updates, 0U);
  ASSERT_TRUE(document_.set_streaming(streaming_layers_of(trace()), true));
  settle();
  EXPECT_EQ(now().detail.host_updates.size(), updates);
  const QString file = folder_.filePath("saved.json");
  ASSERT_TRUE(document_.save_plan(file));
  const auto text = read_file(file.toStdString());
  ASSERT_TRUE(text);
  const auto plan = simulator::plan_from_json(*text, "saved.json");
  ASSERT_TRUE(plan) << plan.error().text();
  const auto before = simulator::resolve_optimizer(trace(), rules);
  const auto after = simulator::resolve_optimizer(trace(), plan->optimizer);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->updated_on_host, before->updated_on_host);
  EXPECT_TRUE(plan->parameters.has_value());

  const StepPicturePtr picture = planned_view(now());
  ASSERT_EQ(picture->lanes.size(), 7U);
  const LaneView& lane = picture->lane(LaneKind::updates);
  ASSERT_EQ(lane.rows.size(), 1U);
  EXPECT_EQ(lane.rows[0].spans.size(), updates);
  const Explained explained(document_.current());
  const std::string details = details_text(details_of(explained, {Selection::Kind::update, 0}));
  EXPECT_NE(details.find("Update on the host"), std::string::npos) << details;
  EXPECT_NE(details.find("With: gradient of "), std::string::npos) << details;
  EXPECT_NE(details.find("Speed: assumed"), std::string::npos) << details;
}

TEST(StreamedStateRows, StandBesideTheParametersThatTheyBelongTo) {
  stowage::testing::MicroTrace t = two_updates();
  const PlanTree tree(std::make_shared<const TraceData>(t.finish(), "made", ""));
  ASSERT_EQ(tree.streaming_state.size(), 2U);
  std::vector<const PlanRow*> rows;
  for (const PlanRow& row : tree.rows) {
    if (row.kind == PlanRowKind::optimizer_state) rows.push_back(&row);
  }
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]->bytes, 300);
  EXPECT_EQ(rows[1]->bytes, 500 + 700) << "with that of the layer inside it";
  EXPECT_EQ(tree.reason_to_stay(*rows[0]), "");
  EXPECT_EQ(&tree.streaming_of(*rows[1]), &tree.streaming_state[1]);
  EXPECT_EQ(tree.rows[static_cast<std::size_t>(rows[0]->parent)].layer, rows[0]->layer);
}

TEST(StreamedStateRows, WhatCannotStreamSaysWhyAndNoDecisionIsAboutIt) {
  stowage::testing::MicroTrace t;
  const StorageId updated = t.existing(100);
  const StorageId frozen = t.existing(200);
  t.state_of(updated, 300);
  t.state_of(frozen, 500);
  t.existing(40, StorageClass::optimizer_state);  // of nobody knows which parameter
  for (const auto& [name, parameter] : {std::pair{"a", updated}, std::pair{"b", frozen}}) {
    t.begin_layer(name);
    t.begin_op();
    t.read(parameter);
    t.run(10).end_op();
    t.end_layer(name);
  }
  t.backward();
  t.optimizer();
  t.update(updated, 10);
  auto data = std::make_shared<const TraceData>(t.finish(), "made", "");
  const PlanTree tree(data);
  std::vector<std::int32_t> state;
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < tree.rows.size(); ++i) {
    all.push_back(static_cast<std::int32_t>(i));
    if (tree.rows[i].kind == PlanRowKind::optimizer_state) state.push_back(all.back());
  }
  const auto row = [&](std::size_t i) { return tree.rows[static_cast<std::size_t>(state[i])]; };
  ASSERT_EQ(state.size(), 3U);
  EXPECT_EQ(tree.reason_to_stay(row(0)), "");
  EXPECT_EQ(tree.reason_to_stay(row(1)), "stays: the step does not use it");
  EXPECT_EQ(tree.reason_to_stay(row(2)), "stays: the recording does not say whose it is");
  for (const auto& chosen : {all, state}) {
    const PlanTree::Targets targets = tree.targets_of(chosen, PlanRowKind::optimizer_state);
    ASSERT_EQ(targets.state.size(), 1U);
    EXPECT_EQ(targets.state[0].storages, (std::vector<StorageId>{StorageId(2)}));
  }
  // Layers stand for one kind of rows at a time; rows themselves are always meant.
  EXPECT_EQ(tree.targets_of(tree.top, PlanRowKind::parameters).count(PlanRowKind::optimizer_state),
            0U);
  EXPECT_EQ(tree.targets_of(state, PlanRowKind::saved).count(PlanRowKind::optimizer_state), 1U);
  // Whatever a rule says.
  PlanDecisions decisions;
  decisions.optimizer.state_streams.assign(data->trace.storages.size(), true);
  const auto id = [&](std::size_t i) {
    return decision_kinds()[static_cast<std::size_t>(kind_of(decisions, tree, row(i)))].id;
  };
  EXPECT_EQ(id(0), "stream_state");
  EXPECT_EQ(id(1), "stay_state");
  EXPECT_EQ(id(2), "stay_state");
}

}  // namespace
}  // namespace stowage::gui
