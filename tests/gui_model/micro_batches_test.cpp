// The document on a trace that has the step in micro-batches, too.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <algorithm>
#include <string>
#include <vector>

#include "gui/model/pareto_search.h"
#include "gui/model/plan_document.h"
#include "simulator/plan/plan_json.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/step_index.h"
#include "simulator/step/unroll.h"
#include "tests/gui_model/spin.h"
#include "tests/support/head_in_parts.h"
#include "tests/support/or_throw.h"
#include "traces/file_io.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

using stowage::testing::or_throw;
using stowage::testing::spin_until;
using stowage::testing::step_with_head;
using stowage::testing::with_parts;

// At once 9000 bytes, in 2 parts 5000, in 4 parts 3000 (tests/support/head_in_parts.h).
class MicroBatchesTest : public ::testing::Test {
 protected:
  MicroBatchesTest() {
    QObject::connect(&document_, &PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
    or_throw(save_trace(file("t.json"), with_parts(step_with_head(8, 1),
                                                   {step_with_head(8, 2), step_with_head(8, 4)})));
    open("t.json");
  }
  [[nodiscard]] std::string file(const char* name) const {
    return folder_.filePath(name).toStdString();
  }
  void settle(PlanDocument& document) {
    ASSERT_TRUE(spin_until([&] {
      return !document.loading().busy() && !document.simulating().busy() &&
             !document.searching().busy();
    }));
  }
  void open(const char* name) {
    document_.open(QString::fromStdString(file(name)));
    settle(document_);
  }
  void plan(Bytes budget) {
    planner::PlanRequest request;
    request.budget = budget;
    document_.find_plan(request);
    settle(document_);
  }
  [[nodiscard]] std::vector<simulator::Structure::Parts> shown() const {
    return simulator::recorded_parts(document_.trace()->trace);
  }
  [[nodiscard]] Bytes peak() const { return document_.current()->result.peak_requested; }

  QTemporaryDir folder_;
  PlanDocument document_;
  std::vector<std::string> errors_;
};

TEST_F(MicroBatchesTest, APlanThatHasThemShowsTheStepInThem) {
  EXPECT_TRUE(shown().empty());
  EXPECT_EQ(peak(), 9000);
  int opened = 0;
  QObject::connect(&document_, &PlanDocument::opened, [&] { ++opened; });
  plan(5000);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(shown(), (std::vector<simulator::Structure::Parts>{{"head", 2}}));
  EXPECT_EQ(opened, 1) << "views of other rows";
  EXPECT_EQ(peak(), 5000);
  EXPECT_EQ(document_.current()->resident().peak_requested, 5000) << "of the step shown";
  const auto placement = document_.current()->plan().placement;
  EXPECT_EQ(document_.trace()->at_once(placement).peak_requested, 9000);
  ASSERT_TRUE(document_.outcome().has_value());
  // On to others, and back.
  plan(3000);
  EXPECT_EQ(shown(), (std::vector<simulator::Structure::Parts>{{"head", 4}}));
  EXPECT_EQ(peak(), 3000);
  plan(9000);
  EXPECT_TRUE(shown().empty());
  EXPECT_EQ(opened, 3);
  // What fits in is an edit like any other.
  plan(5000);
  plan(5001);
  EXPECT_EQ(opened, 4);
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

TEST_F(MicroBatchesTest, ItsFileIsThatOfTheCommand) {
  plan(5000);
  ASSERT_TRUE(document_.set_decision({SavedId(std::size_t{0})}, simulator::Decision::offload));
  settle(document_);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  or_throw(document_.save_plan(QString::fromStdString(file("p.json"))));
  const auto written =
      or_throw(simulator::plan_from_json(or_throw(read_file(file("p.json"))), file("p.json")));
  EXPECT_EQ(written.micro_batches, (std::vector<simulator::MicroBatchRule>{{"head", 2}}));
  const Trace trace = or_throw(load_trace(file("t.json"))).trace;
  EXPECT_EQ(written.target.fingerprint, trace.fingerprint);
  const simulator::StepIndex index(or_throw(simulator::unroll(trace, written)));
  EXPECT_EQ(or_throw(simulator::lower(index, written)).schedule.tenants.size(), 1u);

  PlanDocument other;
  other.open(QString::fromStdString(file("p.json")));
  settle(other);
  ASSERT_NE(other.current(), nullptr);
  EXPECT_EQ(simulator::recorded_parts(other.trace()->trace), shown());
  EXPECT_EQ(other.current()->result.step_ns, document_.current()->result.step_ns);
  // On the trace that is open already, whichever micro-batches are shown.
  open("t.json");
  open("p.json");
  EXPECT_EQ(shown(), (std::vector<simulator::Structure::Parts>{{"head", 2}}));
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

TEST_F(MicroBatchesTest, APlanInOthersThanWereRecordedIsRefused) {
  or_throw(write_file(file("p.json"), R"({ "schema": "stowage-plan/1",
      "for": { "trace_file": "t.json" }, "micro_batches": [{ "segment": "head", "count": 3 }] })"));
  open("p.json");
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_[0].find("p.json: /micro_batches: the step was not recorded in"),
            std::string::npos)
      << errors_[0];
  EXPECT_TRUE(shown().empty()) << "what was open stays";
}

TEST_F(MicroBatchesTest, OnAnotherMachineTheyAreTheSame) {
  plan(5000);
  Calibration slow = document_.trace()->trace.calibration;
  for (std::int64_t& rate : slow.d2h.bytes_per_second) rate /= 2;
  document_.set_calibration(slow);
  settle(document_);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(shown(), (std::vector<simulator::Structure::Parts>{{"head", 2}}));
  plan(3000);
  EXPECT_EQ(shown(), (std::vector<simulator::Structure::Parts>{{"head", 4}}));
  EXPECT_EQ(document_.trace()->trace.calibration.d2h.bytes_per_second, slow.d2h.bytes_per_second);
  EXPECT_EQ(document_.trace()->machine, MachineKind::assumed);
  document_.restore_calibration();
  settle(document_);
  EXPECT_EQ(document_.trace()->machine, MachineKind::recorded);
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

// The curve goes down to the lowest floor, and stays when a point of it opens other micro-batches.
TEST_F(MicroBatchesTest, TheCurveIsOfAllOfThem) {
  ParetoSearch search(document_);
  search.start(6);
  ASSERT_TRUE(spin_until([&] { return !search.job().busy(); }));
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  const auto& points = search.points();
  const auto lowest = std::min_element(
      points.begin(), points.end(), [](const auto& a, const auto& b) { return a.peak < b.peak; });
  ASSERT_NE(lowest, points.end());
  EXPECT_EQ(lowest->peak, 3000);
  EXPECT_EQ(lowest->plan.micro_batches.size(), 1u);
  const std::size_t count = points.size();
  ASSERT_TRUE(document_.set_plan(lowest->plan, "a point"));
  settle(document_);
  EXPECT_EQ(shown(), (std::vector<simulator::Structure::Parts>{{"head", 4}}));
  EXPECT_EQ(search.points().size(), count);
}

}  // namespace
}  // namespace stowage::gui
