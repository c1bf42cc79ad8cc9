// Steps that skip their update, as behind an overflow, among steps that take it, under one plan.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "simulator/lowering/skipped_update.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/twin_sessions.h"

namespace stowage {
namespace {

using executor::Update;
using testing::TwinSessions;

// `step` under the plan; the error's text when it throws.
std::string run(executor::PlannedStep& plan, const std::function<void()>& step) {
  plan.begin_step();
  try {
    step();
  } catch (const std::exception& error) {
    plan.abort_step();
    return error.what();
  }
  const auto report = plan.end_step();
  return report ? report->first_difference : report.error().text();
}

TEST(SkippedUpdate, StepsOfBothKindsAreBitwiseInAnyOrder) {
  for (const auto stream :
       {simulator::ParameterPlan::Stream::forward, simulator::ParameterPlan::Stream::always}) {
    TwinSessions sessions("mlp:layers=3,width=24", 8, "adamw");
    const auto plan = sessions.plan(sessions.stream(stream, 1));
    std::int64_t k = 0;
    for (const char each : std::string("tsttsstst")) {
      SCOPED_TRACE(k);
      const Update update = each == 's' ? Update::skipped : Update::taken;
      sessions.twin().prepare(k);
      const double expected = sessions.twin().step(update);
      sessions.planned().prepare(k++);
      double loss = 0;
      EXPECT_EQ(run(*plan, [&] { loss = sessions.planned().step(update); }), "");
      EXPECT_EQ(loss, expected);
      sessions.expect_same_state(*plan);
    }
  }
}

TEST(SkippedUpdate, AnUpdateBesideItIsRefused) {
  TwinSessions sessions("mlp:layers=3,width=24", 8, "adamw");
  const auto plan = sessions.plan(sessions.stream(simulator::ParameterPlan::Stream::always, 1));
  executor::TrainingStep& step = sessions.planned();
  const auto body = [&](const std::function<void()>& end) {
    step.prepare(0);
    step.begin();
    step.accumulate();
    end();
  };
  std::string error = run(*plan, [&] {
    body([&] {
      plan->skip_update();
      step.end();
    });
  });
  EXPECT_NE(error.find("updated in a step that skips its update"), std::string::npos) << error;
  error = run(*plan, [&] {
    body([&] {
      plan->skip_update();
      plan->skip_update();
    });
  });
  EXPECT_NE(error.find("skipped already"), std::string::npos) << error;
  error = run(*plan, [&] {
    body([&] {
      step.end();
      plan->skip_update();
    });
  });
  EXPECT_NE(error.find("it has begun"), std::string::npos) << error;
  // A step that ends without its update is none of the two.
  error = run(*plan, [&] { body([] {}); });
  EXPECT_NE(error.find("the step ended after 0"), std::string::npos) << error;
  EXPECT_THROW(plan->skip_update(), c10::Error);  // outside of a step
}

TEST(SkippedUpdate, NeedsARecordedUpdate) {
  TwinSessions sessions("mlp:layers=3,width=24", 8, "none");
  const auto plan = sessions.plan(sessions.stream(simulator::ParameterPlan::Stream::always, 1));
  const std::string error = run(*plan, [&] {
    sessions.planned().prepare(0);
    static_cast<void>(sessions.planned().step());
    plan->skip_update();
  });
  EXPECT_NE(error.find("cannot skip its update"), std::string::npos) << error;
}

}  // namespace
}  // namespace stowage
