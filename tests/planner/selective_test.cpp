// planner/policies/selective.cpp on a layer made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/planner.h"
#include "simulator/step/plan_structure.h"
#include "tests/support/micro_trace.h"

namespace stowage::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MicroTrace;

// What each op makes is saved by the next: layers.0#0 is made by aten::linear, #1 by silu, #2 and
// #3 by products of batches, #4 by dropout.
Trace layer_of_products() {
  MicroTrace t;
  std::vector<std::pair<SavedId, StorageId>> saved;
  StorageId given;
  t.begin_layer("layers.0");
  Bytes bytes = 100;
  for (const char* op : {"aten::linear", "aten::silu", "aten::bmm", "aten::bmm",
                         "aten::native_dropout", "aten::linear"}) {
    t.run(10).begin_op(op);
    if (given.valid()) {
      t.read(given);
      saved.emplace_back(t.pack(given), given);
    }
    const StorageId made = t.alloc(bytes);
    t.end_op();
    if (given.valid()) t.let_go(given);
    given = made;
    bytes += 100;
  }
  t.end_layer("layers.0");
  t.free(given);
  t.backward();
  for (; !saved.empty(); saved.pop_back()) {
    t.drop(t.unpack(saved.back().first));
    t.run(10);
    t.free(saved.back().second);
  }
  return t.finish();
}

class Selective : public ::testing::Test {
 protected:
  Selective() : trace_(layer_of_products()), index_(trace_) {}

  [[nodiscard]] std::vector<std::string> made_again(const std::string& spec) const {
    const auto rules = policy_rules(index_, spec);
    if (!rules) return {rules.error().text()};
    simulator::Plan plan;
    plan.saved = rules->saved;
    const auto structure = simulator::structure_of(trace_, plan);
    return structure ? structure->ops : std::vector{structure.error().text()};
  }

  Trace trace_;
  simulator::StepIndex index_;
};

TEST_F(Selective, SavesWhatTheListNamesAndWhatOpsCannotMake) {
  EXPECT_THAT(made_again("selective"), ElementsAre("layers.0#1"));
  EXPECT_THAT(made_again("selective:save=silu"), ElementsAre("layers.0#2", "layers.0#3"));
}

TEST_F(Selective, EveryNthProductOfALayerIsNotSaved) {
  EXPECT_THAT(made_again("selective:every=2"), ElementsAre("layers.0#1", "layers.0#3"));
  EXPECT_THAT(made_again("selective:every=1"),
              ElementsAre("layers.0#1", "layers.0#2", "layers.0#3"));
  EXPECT_EQ(policy_rules(index_, "selective:every=-1").error().code, ErrorCode::usage);
  EXPECT_EQ(policy_rules(index_, "selective:every=two").error().code, ErrorCode::usage);
}

TEST_F(Selective, AListThatNamesNothingIsRefused) {
  const auto nonsense = policy_rules(index_, "selective:save=sily");
  ASSERT_FALSE(nonsense.ok());
  EXPECT_EQ(nonsense.error().code, ErrorCode::usage);
  EXPECT_THAT(nonsense.error().text(), HasSubstr("the nearest is 'silu'"));
  EXPECT_FALSE(policy_rules(index_, "selective:save=silu+conv*").ok());
  EXPECT_FALSE(policy_rules(index_, "selective:save=nonsense").ok());
  const auto rare = policy_rules(index_, "selective:every=100");
  ASSERT_TRUE(rare.ok());
  EXPECT_THAT(rare->notes.front(),
              HasSubstr("no numbered layer has more than 2 listed products of matrices"));
}

TEST_F(Selective, NotesCountWhatStays) {
  PlanRequest request;
  request.policy = "selective";
  const auto outcome = make_plan(index_, request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_THAT(outcome->notes,
              ElementsAre("policy selective: 1 saved, 500 B, not of the list, stay: "
                          "aten::native_dropout made it, which does not run again by itself",
                          "policy selective: 1 saved, 100 B, not of the list, stay: "
                          "aten::linear made it, which does not run again by itself"));
}

}  // namespace
}  // namespace stowage::planner
