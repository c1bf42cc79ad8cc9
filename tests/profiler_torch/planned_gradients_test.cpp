// Gradients under a plan, on the real device: where they are between steps, who may have them, and
// what happens to them when a step does not go as planned.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::NamedTensor;
using executor::PlannedStep;
using testing::TwinSessions;

// All of them leave.
simulator::Schedule on_the_host(const simulator::StepIndex& index) {
  const Trace& trace = index.trace();
  simulator::Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  decisions.budget = 0;
  for (const LayerId layer : simulator::layers_of_gradients(trace)) {
    decisions.gradients.at_home.push_back(layer.valid());
  }
  auto lowered = simulator::lower(index, decisions);
  if (!lowered) throw std::runtime_error(lowered.error().text());
  for (const simulator::LoweringNote& note : lowered->notes) {
    ADD_FAILURE() << simulator::subject_of(trace, note) << ": " << note.text;
  }
  EXPECT_FALSE(testing::tenants_of(lowered->schedule, simulator::kGradient).empty());
  return std::move(lowered->schedule);
}

std::string error_of(const NamedTensor& tensor) {
  try {
    static_cast<void>(tensor.tensor.const_data_ptr());
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "none";
}

class Gradients : public ::testing::Test {
 protected:
  [[nodiscard]] simulator::Schedule schedule() const { return on_the_host(twins_.index()); }

  void expect_steps(PlannedStep& plan, std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k <= last; ++k) {
      const auto result = twins_.expect_same_step(plan, k);
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
    }
  }

  TwinSessions twins_{"mlp:layers=2,width=32", 4, "adamw"};
};

TEST_F(Gradients, AreAwayBetweenStepsAndThereAgainWhenThePlanIsGone) {
  {
    const auto plan = twins_.plan(schedule());
    const Bytes predicted = simulator::replay(twins_.index(), schedule()).peak_requested;
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto result = twins_.expect_same_step(*plan, k);
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_GT(result.report.stored_bytes, 0);
      // The last ones accumulate where the first update begins, and stay for it.
      EXPECT_LT(result.report.loaded_bytes, result.report.stored_bytes);
      EXPECT_GT(result.report.loaded_bytes, 0);
      EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
      EXPECT_EQ(result.peak, predicted) << k;
      for (const NamedTensor& each : twins_.planned().gradients()) {
        EXPECT_NE(error_of(each).find("gradient " + each.name + " is not on the device"),
                  std::string::npos)
            << error_of(each);
      }
    }
    // Parameters come back for an evaluation, and that needs none of them.
    plan->materialise();
    EXPECT_NE(error_of(twins_.planned().gradients()[0]), "none");
    twins_.expect_same_state(*plan);
    plan->materialise_all();
    EXPECT_EQ(error_of(twins_.planned().gradients()[0]), "none");
    expect_steps(*plan, 3, 4);
  }
  testing::expect_same_bits(twins_.device(), twins_.planned().gradients(),
                            twins_.twin().gradients());
  // As ever, without a plan.
  EXPECT_EQ(twins_.planned().run(7), twins_.twin().run(7));
  testing::expect_same_bits(twins_.device(), twins_.planned().gradients(),
                            twins_.twin().gradients());
}

// What an earlier step left on the device goes home when the plan is made, so that the first step
// begins as all do; and it is not lost by that.
TEST_F(Gradients, OfAnEarlierStepGoHome) {
  ASSERT_EQ(twins_.planned().run(0), twins_.twin().run(0));
  const Bytes before = twins_.device().memory().requested;
  const auto plan = twins_.plan(schedule());
  EXPECT_LT(twins_.device().memory().requested, before);
  EXPECT_NE(error_of(twins_.planned().gradients()[0]), "none");
  testing::expect_same_bits(twins_.device(), plan->values(twins_.planned().gradients()),
                            twins_.twin().gradients());
  expect_steps(*plan, 1, 2);
}

// Somebody has a hand on one: it stays, and is his when the step has dropped it.
TEST_F(Gradients, ThatSomebodyHoldsStay) {
  ASSERT_EQ(twins_.planned().run(0), twins_.twin().run(0));
  const NamedTensor held = twins_.planned().gradients()[0];
  const NamedTensor same = twins_.twin().gradients()[0];
  const auto plan = twins_.plan(schedule());
  EXPECT_EQ(error_of(held), "none");
  expect_steps(*plan, 1, 2);
  testing::expect_same_bits(twins_.device(), {held}, {same});
}

// Those of the device that somebody can look at now.
std::vector<NamedTensor> present(const std::vector<NamedTensor>& gradients) {
  std::vector<NamedTensor> there;
  for (const NamedTensor& each : gradients) {
    if (error_of(each) == "none") there.push_back(each);
  }
  return there;
}

// A view of one, taken in a step, is no reason against the next one. It is away as the gradient is.
TEST_F(Gradients, MayHaveViewsOfAStepBefore) {
  const auto plan = twins_.plan(schedule());
  expect_steps(*plan, 0, 0);
  at::Tensor kept;
  const auto keeps = [&](const std::string& event) {
    if (event != "update_begin" || kept.defined()) return;
    const auto there = present(twins_.planned().gradients());
    ASSERT_FALSE(there.empty());
    kept = there[0].tensor.detach().view(-1);
  };
  const auto result = twins_.run_planned(*plan, 1, keeps);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(twins_.run_twin(1).loss, result.loss);
  ASSERT_TRUE(kept.defined());
  for (std::int64_t k = 2; k < 4; ++k) {
    EXPECT_EQ(twins_.expect_same_step(*plan, k).error, "");
    EXPECT_NE(error_of({"kept", kept}).find("a view of gradient"), std::string::npos);
  }
}

// What is left of a step that threw, too.
TEST_F(Gradients, OfAStepThatThrewAreHisWhoKeepsThem) {
  const auto plan = twins_.plan(schedule());
  expect_steps(*plan, 0, 0);
  const auto fails = [](const std::string& event) {
    if (event == "update_end") throw std::runtime_error("in the step");
  };
  EXPECT_NE(twins_.run_planned(*plan, 1, fails).error, "");
  EXPECT_NE(twins_.run_twin(1, fails).error, "");
  const std::vector<NamedTensor> kept = present(twins_.planned().gradients());
  ASSERT_FALSE(kept.empty());
  std::vector<at::Tensor> copies;
  for (const NamedTensor& each : kept) copies.push_back(each.tensor.clone());
  for (std::int64_t k = 2; k < 4; ++k) {
    EXPECT_EQ(twins_.expect_same_step(*plan, k).error, "");
    for (std::size_t i = 0; i < kept.size(); ++i) {
      ASSERT_EQ(error_of(kept[i]), "none") << kept[i].name;
      EXPECT_TRUE(at::equal(kept[i].tensor, copies[i])) << kept[i].name;
    }
  }
}

TEST_F(Gradients, AreOfOnePlanAtATime) {
  const auto plan = twins_.plan(schedule());
  expect_steps(*plan, 0, 0);
  executor::PlannedStepOptions options;
  const auto second = PlannedStep::create(twins_.device(), twins_.shared_trace(), schedule(),
                                          twins_.planned().parameters(), options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().hint, "one plan at a time has a model's gradients");
  expect_steps(*plan, 1, 1);
}

TEST_F(Gradients, NeedTheRecordedParameters) {
  std::vector<NamedTensor> others = twins_.planned().parameters();
  others.pop_back();
  const auto plan =
      PlannedStep::create(twins_.device(), twins_.shared_trace(), schedule(), others, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().text().find("not the parameters that were recorded"), std::string::npos)
      << plan.error().text();
}

// An exception in backward, or between two updates: some are there by then, others away; as without
// a plan. The next step begins as ever.
TEST_F(Gradients, AreNotLostByAnException) {
  for (const char* at : {"backward_begin layers.0", "update_end", "forward_begin layers.1"}) {
    SCOPED_TRACE(at);
    TwinSessions twins{"mlp:layers=2,width=32", 4, "sgd"};
    const auto plan = twins.plan(on_the_host(twins.index()));
    ASSERT_EQ(twins.expect_same_step(*plan, 0).error, "");
    const auto fails = [&](const std::string& event) {
      if (event == at) throw std::runtime_error("in the step");
    };
    EXPECT_NE(twins.run_planned(*plan, 1, fails).error.find("in the step"), std::string::npos);
    EXPECT_NE(twins.run_twin(1, fails).error.find("in the step"), std::string::npos);
    twins.expect_same_state(*plan);
    for (std::int64_t k = 2; k < 4; ++k) {
      const auto result = twins.expect_same_step(*plan, k);
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
    }
  }
}

// Where the step leaves its plan all that is away comes back, and what is made from then on stays
// where it is.
TEST_F(Gradients, ComeBackWhereAStepLeavesItsPlan) {
  for (const char* at : {"forward_begin layers.0", "backward_begin layers.1",
                         "backward_begin layers.0", "update_begin"}) {
    SCOPED_TRACE(at);
    TwinSessions twins{"mlp:layers=2,width=32", 4, "adamw"};
    const auto plan = twins.plan(on_the_host(twins.index()), executor::OffPlan::offload_all);
    ASSERT_EQ(twins.expect_same_step(*plan, 0).error, "");
    // A layer that no recording knows.
    bool done = false;
    const auto strays = [&](const std::string& event) {
      if (event != at || done) return;
      done = true;
      plan->layer_event(executor::LayerEvent::forward_begin, "of another model");
    };
    const auto result = twins.run_planned(*plan, 1, strays);
    ASSERT_EQ(result.error, "");
    EXPECT_FALSE(result.report.on_plan);
    EXPECT_EQ(twins.run_twin(1).loss, result.loss);
    twins.expect_same_state(*plan);
    for (std::int64_t k = 2; k < 4; ++k) {
      const auto next = twins.expect_same_step(*plan, k);
      ASSERT_EQ(next.error, "");
      EXPECT_TRUE(next.report.on_plan) << next.report.first_difference;
    }
  }
}

// Nobody dropped the gradients of the step before: nothing is added to what is not there.
TEST_F(Gradients, ThatAreNotDroppedAreNotAddedTo) {
  const auto plan = twins_.plan(schedule());
  expect_steps(*plan, 0, 0);
  twins_.planned().prepare(1);
  plan->begin_step();
  EXPECT_THROW(twins_.planned().accumulate(), c10::Error);
  plan->abort_step();
  plan->materialise_all();
  EXPECT_EQ(error_of(twins_.planned().gradients()[0]), "none");
}

// A step that skips its update stores them all the same.
TEST_F(Gradients, AreStoredByAStepThatSkipsItsUpdate) {
  const auto plan = twins_.plan(schedule());
  expect_steps(*plan, 0, 0);
  for (std::int64_t k = 1; k < 3; ++k) {
    twins_.planned().prepare(k);
    twins_.twin().prepare(k);
    plan->begin_step();
    const double loss = twins_.planned().step(executor::Update::skipped);
    const auto report = plan->end_step();
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->on_plan) << report->first_difference;
    EXPECT_GT(report->stored_bytes, 0);
    EXPECT_EQ(loss, twins_.twin().step(executor::Update::skipped));
    twins_.expect_same_state(*plan);
  }
  expect_steps(*plan, 3, 4);
}

struct Model {
  const char* spec;
  std::int64_t batch;
  const char* optimizer;
};
class GradientsOf : public ::testing::TestWithParam<Model> {};

TEST_P(GradientsOf, AreTheSameBitForBitAndToTheByte) {
  TwinSessions twins{GetParam().spec, GetParam().batch, GetParam().optimizer};
  const simulator::Schedule schedule = on_the_host(twins.index());
  const Bytes predicted = simulator::replay(twins.index(), schedule).peak_requested;
  const Bytes resident =
      simulator::replay(twins.index(), simulator::resident_schedule(twins.index())).peak_requested;
  EXPECT_LT(predicted, resident);
  const auto plan = twins.plan(schedule);
  for (std::int64_t k = 0; k < 4; ++k) {
    const auto result = twins.expect_same_step(*plan, k);
    ASSERT_EQ(result.error, "");
    EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
    EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
    EXPECT_EQ(result.peak, predicted) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, GradientsOf,
    ::testing::Values(Model{"mlp:layers=3,width=64", 4, "none"},
                      Model{"mlp:layers=3,width=64", 4, "sgd"},
                      Model{"mlp:layers=3,width=64", 4, "adamw"},
                      Model{"gpt2:layers=2,width=32,seq=256,heads=2,vocab=64", 2, "adamw"},
                      Model{"gpt2:layers=2,width=32,seq=256,heads=2,vocab=64", 2, "none"},
                      Model{"llama3-8b:layers=2,width=64,seq=512,heads=4,kv_heads=2,vocab=64", 1,
                            "sgd"}),
    [](const auto& each) {
      std::string name = each.param.spec;
      name = name.substr(0, name.find_first_of(":-")) + "_" + each.param.optimizer;
      return name;
    });

}  // namespace
}  // namespace stowage
