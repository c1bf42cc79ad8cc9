// Plans under which every parameter streams: what a user's program meets between steps, after
// exceptions, off the plan, and under a memory limit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/replay/replay.h"
#include "tests/profiler_torch/failing_device.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::OffPlan;
using testing::error_of;
using testing::TwinSessions;
using Stream = simulator::ParameterPlan::Stream;

constexpr const char* kMlp = "mlp:layers=4,width=32";
constexpr const char* kGpt2 = "gpt2:layers=2,width=32,seq=16,vocab=64";

Bytes all_bytes(const simulator::Schedule& schedule) {
  Bytes bytes = 0;
  for (const auto& each : testing::parameters_of(schedule)) bytes += each.bytes;
  return bytes;
}

Bytes predicted_peak(const TwinSessions& twins, const simulator::Schedule& schedule) {
  return simulator::replay(twins.index(), schedule).peak_requested;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Throws at the n-th event (from 1 on) whose text begins like this.
testing::WatchedDriver::Watch throw_at(const std::string& event, int number) {
  return [event, left = number](const std::string& here) mutable {
    if (here.starts_with(event) && --left == 0) throw std::runtime_error("it fails at " + here);
  };
}

using Mode = std::tuple<Stream, std::optional<std::int32_t>>;
const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {Stream::always, 0},   {Stream::always, 2},   {Stream::always, std::nullopt},
      {Stream::forward, 0},  {Stream::forward, 1},  {Stream::forward, std::nullopt},
      {Stream::backward, 0}, {Stream::backward, 1}, {Stream::backward, std::nullopt}};
  return all;
}

TEST(StreamedPlans, AreBitwiseAndExactInEveryMode) {
  for (const char* const spec : {kMlp, kGpt2}) {
    SCOPED_TRACE(spec);
    TwinSessions twins(spec, 4, "adamw");
    std::int64_t k = 0;
    for (const auto& [stream, prefetch] : modes()) {
      SCOPED_TRACE(::testing::Message()
                   << static_cast<int>(stream) << " prefetch " << prefetch.value_or(-1));
      const simulator::Schedule schedule = twins.stream(stream, prefetch);
      const auto plan = twins.plan(schedule);
      for (int i = 0; i < 3; ++i, ++k) {
        const auto result = twins.expect_same_step(*plan, k);
        EXPECT_EQ(result.peak, predicted_peak(twins, schedule)) << "step " << i;
        EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
        EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
        EXPECT_GE(result.report.loaded_bytes, all_bytes(schedule));
        EXPECT_EQ(result.report.stored_bytes, all_bytes(schedule));
      }
    }
  }
}

// Trap 1: autograd saves views of weights, which keep no device memory.
TEST(StreamedPlans, SavedViewsOfWeightsKeepNoMemory) {
  TwinSessions twins(kMlp, 4, "sgd");
  const simulator::Schedule schedule = twins.stream(Stream::always, 0);
  const Bytes streamed = all_bytes(schedule);
  Bytes parameters = 0;
  for (const auto& each : twins.planned().parameters()) {
    parameters += static_cast<Bytes>(each.tensor.nbytes());
  }
  EXPECT_EQ(streamed, parameters);
  Bytes resident = 0;
  Bytes planned = 0;
  const auto note = [&](Bytes& into) {
    return [&](const std::string& event) {
      if (event == "forward_end loss") into = twins.device().memory().requested;
    };
  };
  static_cast<void>(twins.run_twin(0, note(resident)));
  const auto plan = twins.plan(schedule);
  EXPECT_EQ(twins.run_planned(*plan, 0, note(planned)).error, "");
  EXPECT_EQ(planned, resident - streamed);
  twins.expect_same_state(*plan);
}

// Trap 2: the embedding is the head as well.
TEST(StreamedPlans, ATiedParameterIsOnTheDeviceOnce) {
  TwinSessions twins(kGpt2, 2, "sgd");
  const simulator::Schedule schedule = twins.stream(Stream::always, 0);
  EXPECT_EQ(testing::parameters_of(schedule).size(), twins.planned().parameters().size());
  const auto plan = twins.plan(schedule);
  for (std::int64_t k = 0; k < 3; ++k) {
    EXPECT_EQ(twins.expect_same_step(*plan, k).peak, predicted_peak(twins, schedule));
  }
}

// Traps 19 and 24: between steps parameters are away, and whoever touches one hears of it.
TEST(StreamedPlans, BetweenStepsATouchIsRefusedUntilMaterialise) {
  for (const auto& [stream, prefetch] : modes()) {
    SCOPED_TRACE(::testing::Message()
                 << static_cast<int>(stream) << " prefetch " << prefetch.value_or(-1));
    TwinSessions twins(kMlp, 4, "adamw");
    const Bytes before = twins.device().memory().requested;
    const simulator::Schedule schedule = twins.stream(stream, prefetch);
    const auto plan = twins.plan(schedule);
    const auto evaluate = [](executor::TrainingStep& step) {
      const at::NoGradGuard no_grad;
      return step.model().forward().tensor.item<double>();
    };
    const at::Tensor weight = twins.planned().parameters().front().tensor;
    const std::string name = twins.planned().parameters().front().name;
    const auto expect_refused = [&](const std::function<void()>& touch) {
      const std::string text = error_of(touch);
      EXPECT_TRUE(has(text, "parameter " + name + " is not on the device")) << text;
    };
    const auto expect_all_refused = [&] {
      const std::string text = error_of([&] { static_cast<void>(evaluate(twins.planned())); });
      EXPECT_TRUE(has(text, "parameter layers.")) << text;
      EXPECT_TRUE(has(text, "is not on the device")) << text;
      expect_refused([&] { static_cast<void>(weight.clone()); });
      expect_refused([&] {
        const at::NoGradGuard no_grad;
        weight.clamp_(-1, 1);
      });
      expect_refused([&] {
        std::ostringstream out;
        out << weight;
      });
    };
    expect_all_refused();
    std::int64_t k = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {
      static_cast<void>(twins.expect_same_step(*plan, k++));
      expect_all_refused();
      static_cast<void>(twins.expect_same_step(*plan, k++));
      plan->materialise();
      EXPECT_EQ(twins.device().memory().requested, before);
      EXPECT_EQ(evaluate(twins.planned()), evaluate(twins.twin()));
      {
        const at::NoGradGuard no_grad;
        for (executor::TrainingStep* step : {&twins.planned(), &twins.twin()}) {
          step->parameters().front().tensor.mul_(0.5);
        }
      }
      twins.expect_same_state(*plan);
    }
    // The step that adopts has everything when it begins; the next one is exact again.
    static_cast<void>(twins.expect_same_step(*plan, k++));
    EXPECT_EQ(twins.expect_same_step(*plan, k++).peak, predicted_peak(twins, schedule));
  }
}

// Trap 20.
TEST(StreamedPlans, VersionCountersAreTheOptimizersAlone) {
  TwinSessions twins(kMlp, 4, "adamw");
  const auto plan = twins.plan(twins.stream(Stream::always, 1));
  const auto versions = [](executor::TrainingStep& step) {
    std::vector<std::int64_t> all;
    for (const auto& each : step.parameters()) {
      all.push_back(static_cast<std::int64_t>(each.tensor._version()));
    }
    return all;
  };
  const auto differences = [&](const auto& before, executor::TrainingStep& step) {
    std::vector<std::int64_t> all = versions(step);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] -= before[i];
    return all;
  };
  const auto planned = versions(twins.planned());
  const auto twin = versions(twins.twin());
  for (std::int64_t k = 0; k < 3; ++k) static_cast<void>(twins.expect_same_step(*plan, k));
  EXPECT_EQ(differences(planned, twins.planned()), differences(twin, twins.twin()));
  EXPECT_GT(differences(planned, twins.planned()).front(), 0);
}

// An exception anywhere: nothing written is lost, nothing leaks, the next step is right.
TEST(StreamedPlans, ExceptionsLoseNothing) {
  struct Case {
    const char* event;
    int number;
  };
  for (const char* const optimizer : {"sgd", "adamw"}) {
    for (const auto& [stream, prefetch] : modes()) {
      SCOPED_TRACE(::testing::Message() << optimizer << " " << static_cast<int>(stream)
                                        << " prefetch " << prefetch.value_or(-1));
      TwinSessions twins(kMlp, 4, optimizer);
      const simulator::Schedule schedule = twins.stream(stream, prefetch);
      const Bytes peak = predicted_peak(twins, schedule);
      const auto plan = twins.plan(schedule);
      const Bytes away = twins.device().memory().requested;
      std::int64_t k = 0;
      for (const Case& at :
           {Case{"forward_begin", 1}, Case{"forward_end", 2}, Case{"forward_begin", 4},
            Case{"backward_begin", 2}, Case{"backward_end", 2}, Case{"update_begin", 1},
            Case{"update_begin", 4}, Case{"update_end", 1}, Case{"update_end", 3},
            Case{"update_end", 8}}) {
        SCOPED_TRACE(at.event + std::string(" ") + std::to_string(at.number));
        const auto reference = twins.run_twin(k, throw_at(at.event, at.number));
        const auto result = twins.run_planned(*plan, k++, throw_at(at.event, at.number));
        ASSERT_TRUE(has(reference.error, "it fails at")) << reference.error;
        ASSERT_TRUE(has(result.error, "it fails at")) << result.error;
        twins.expect_same_state(*plan, /*gradients=*/false);
        for (executor::TrainingStep* step : {&twins.planned(), &twins.twin()}) {
          for (const auto& each : step->parameters()) each.tensor.mutable_grad().reset();
        }
        static_cast<void>(twins.expect_same_step(*plan, k++));
        EXPECT_EQ(twins.expect_same_step(*plan, k++).peak, peak);
        if (::testing::Test::HasFailure()) return;
      }
      plan->materialise();
      EXPECT_EQ(twins.device().memory().requested, away + all_bytes(schedule));
    }
  }
}

// A device that cannot be waited for at a step's end, for once: what the step wrote is there, and
// the next step begins.
TEST(StreamedPlans, AFailedWaitLosesNothing) {
  for (const auto& [stream, prefetch] : modes()) {
    SCOPED_TRACE(::testing::Message()
                 << static_cast<int>(stream) << " prefetch " << prefetch.value_or(-1));
    TwinSessions twins(kMlp, 4, "sgd");
    testing::FailingDevice device(twins.device());
    auto made = executor::PlannedStep::create(
        device, std::make_shared<const Trace>(twins.trace()),
        testing::in_test_memory(twins.stream(stream, prefetch)), twins.planned().parameters(),
        {.poison_host = true, .poison_device = true});
    ASSERT_TRUE(made.ok()) << made.error().text();
    executor::PlannedStep& plan = **made;
    std::int64_t k = 0;
    for (const bool aborted : {false, true, false}) {
      static_cast<void>(twins.expect_same_step(plan, k++));
      static_cast<void>(twins.run_twin(k));
      twins.planned().prepare(k++);
      plan.begin_step();
      static_cast<void>(twins.planned().step());
      device.set_fails(true);
      EXPECT_TRUE(has(error_of([&] {
                        if (aborted) {
                          plan.abort_step();
                        } else {
                          static_cast<void>(plan.end_step());
                        }
                      }),
                      "the device fails"));
      EXPECT_TRUE(has(error_of([&] { plan.begin_step(); }), "the device fails"));
      device.set_fails(false);
      twins.expect_same_state(plan);
    }
    static_cast<void>(twins.expect_same_step(plan, k++));
    plan.materialise();
    twins.expect_same_state(plan);
  }
}

// A step that is begun again without an end is one that failed.
TEST(StreamedPlans, AStepThatIsLeftIsAborted) {
  TwinSessions twins(kMlp, 4, "sgd");
  const auto plan = twins.plan(twins.stream(Stream::forward, 1));
  static_cast<void>(twins.expect_same_step(*plan, 0));
  const auto reference = twins.run_twin(1);
  plan->begin_step();
  EXPECT_EQ(twins.run_planned(*plan, 1).loss, reference.loss);
  twins.expect_same_state(*plan);
  static_cast<void>(twins.expect_same_step(*plan, 2));
}

// A step that leaves its plan has all parameters from there on, or is refused.
TEST(StreamedPlans, OffPlanEverythingComesBack) {
  for (const auto& [stream, prefetch] : modes()) {
    SCOPED_TRACE(::testing::Message()
                 << static_cast<int>(stream) << " prefetch " << prefetch.value_or(-1));
    TwinSessions twins(kMlp, 4, "adamw");
    const simulator::Schedule schedule = twins.stream(stream, prefetch);
    std::int64_t k = 0;
    for (const char* const event :
         {"forward_begin layers.1", "backward_begin layers.2", "update_begin", "update_end"}) {
      SCOPED_TRACE(event);
      const auto plan = twins.plan(schedule, OffPlan::offload_all);
      const auto refusing = [&](executor::PlannedStep& driver) {
        return [&driver, event, done = false](const std::string& here) mutable {
          if (done || !here.starts_with(event)) return;
          done = true;
          driver.layer_event(executor::LayerEvent::backward_end, "another");
        };
      };
      const auto reference = twins.run_twin(k);
      const auto result = twins.run_planned(*plan, k++, refusing(*plan));
      EXPECT_EQ(result.error, "");
      EXPECT_FALSE(result.report.on_plan);
      EXPECT_EQ(result.loss, reference.loss);
      twins.expect_same_state(*plan);
      static_cast<void>(twins.expect_same_step(*plan, k++));
      const auto steady = twins.expect_same_step(*plan, k++);
      EXPECT_TRUE(steady.report.on_plan);
      EXPECT_EQ(steady.peak, predicted_peak(twins, schedule));
    }
    const auto plan = twins.plan(schedule);
    const auto result = twins.run_planned(*plan, k, [&](const std::string& here) {
      if (here == "forward_begin layers.1") {
        plan->layer_event(executor::LayerEvent::forward_begin, "another");
      }
    });
    EXPECT_TRUE(has(result.error, "the step is not the one the plan was made for")) << result.error;
    static_cast<void>(twins.expect_same_step(*plan, k));
  }
}

TEST(StreamedPlans, AnUpdateOfAnotherParameterIsOffPlan) {
  TwinSessions twins(kMlp, 4, "sgd");
  const auto plan = twins.plan(twins.stream(Stream::always, 0));
  const auto parameters = twins.planned().parameters();
  const auto result =
      twins.run_planned(*plan, 0, [&, done = false](const std::string& here) mutable {
        if (done || here != "update_begin") return;
        done = true;
        plan->parameter_update(executor::UpdateEvent::begin, parameters.back().tensor);
      });
  EXPECT_TRUE(has(result.error, "parameter_update_begin number 0 is of " + parameters.back().name +
                                    ", recorded was " + parameters.front().name))
      << result.error;
}

TEST(StreamedPlans, AreRefusedForOtherParametersAndHeldOnes) {
  TwinSessions twins(kMlp, 4, "sgd");
  const simulator::Schedule schedule = twins.stream(Stream::always, 0);
  const auto trace = std::make_shared<const Trace>(twins.trace());
  const auto error_for = [&](std::vector<executor::NamedTensor> parameters) {
    const auto plan = executor::PlannedStep::create(
        twins.device(), trace, testing::in_test_memory(schedule), std::move(parameters));
    return plan ? std::string("none") : plan.error().text();
  };
  auto parameters = twins.planned().parameters();
  EXPECT_TRUE(has(error_for({}), "0 storages, recorded were 16")) << error_for({});
  std::swap(parameters[0], parameters[1]);
  EXPECT_TRUE(has(error_for(parameters), "bytes, recorded were"));
  std::swap(parameters[0], parameters[1]);
  {
    const at::Tensor view = parameters[3].tensor.detach();
    EXPECT_TRUE(has(error_for(parameters), "parameter " + parameters[3].name +
                                               " cannot stream: somebody else holds its memory"));
  }
  const Bytes before = twins.device().memory().requested;
  EXPECT_EQ(error_for(parameters), "none");
  EXPECT_EQ(twins.device().memory().requested, before) << "a plan that is gone has given all back";
}

// Several plans of one model (another batch, say) take turns: one at a time has the parameters.
TEST(StreamedPlans, OneAtATimeHasTheParameters) {
  TwinSessions twins(kMlp, 4, "sgd");
  const auto first = twins.plan(twins.stream(Stream::always, 1));
  static_cast<void>(twins.expect_same_step(*first, 0));
  const auto schedule = twins.stream(Stream::forward, 0);
  const std::string text = error_of([&] { static_cast<void>(twins.plan(schedule)); });
  EXPECT_TRUE(has(text, "is not on the device")) << text;
  first->materialise();
  const auto second = twins.plan(schedule);
  static_cast<void>(twins.expect_same_step(*second, 1));
  EXPECT_TRUE(has(twins.run_planned(*first, 2).error, "is not on the device"));
  static_cast<void>(twins.expect_same_step(*second, 2));
  for (std::int64_t k = 3; k < 7; k += 2) {
    second->materialise();
    static_cast<void>(twins.expect_same_step(*first, k));
    first->materialise();
    static_cast<void>(twins.expect_same_step(*second, k + 1));
  }
}

// There is room for nothing that is away: what stayed over the step's end is back, and the next
// step finds everything. Nothing is gone with the plan either.
TEST(StreamedPlans, OutOfMemoryLosesNothing) {
  if (testing::on_gpu()) GTEST_SKIP() << "its limit is on what the driver gives";
  int partly = 0;
  for (const auto& [stream, prefetch] : modes()) {
    SCOPED_TRACE(::testing::Message()
                 << static_cast<int>(stream) << " prefetch " << prefetch.value_or(-1));
    TwinSessions twins(kGpt2, 2, "adamw");
    executor::Device& device = twins.device();
    const simulator::Schedule schedule = twins.stream(stream, prefetch);
    Bytes hidden = 0;
    for (const auto& each : schedule.stays) {
      if (each.wraps) hidden += schedule.tenants[each.tenant.index()].bytes;
    }
    const Bytes away = all_bytes(schedule) - hidden;
    if (away == 0) continue;
    if (hidden > 0) ++partly;
    auto plan = twins.plan(schedule);
    std::int64_t k = 0;
    for (; k < 3; ++k) {
      static_cast<void>(twins.expect_same_step(*plan, k));
      device.set_memory_limit(device.memory().requested);
      EXPECT_THROW(plan->materialise(), c10::OutOfMemoryError);
      device.set_memory_limit(0);
      twins.expect_same_state(*plan);
    }
    EXPECT_EQ(twins.expect_same_step(*plan, k).peak, predicted_peak(twins, schedule));
    const Bytes before = device.memory().requested;
    device.set_memory_limit(before);
    plan.reset();
    EXPECT_THROW(executor::PlannedStep::materialise_left_behind(), c10::OutOfMemoryError);
    device.set_memory_limit(0);
    EXPECT_EQ(device.memory().requested, before);
    executor::PlannedStep::materialise_left_behind();
    EXPECT_EQ(device.memory().requested, before + away);
    EXPECT_TRUE(testing::bits_of(device, twins.planned().parameters()) ==
                testing::bits_of(device, twins.twin().parameters()));
  }
  EXPECT_GT(partly, 0) << "nothing was hidden beside what was away";
}

// A step that needs more than the device has: parameters and gradients do not fit together.
TEST(StreamedPlans, TrainWhereParametersAndGradientsDoNotFit) {
  if (testing::on_gpu()) GTEST_SKIP() << "tests/gpu has one that leaves room for fragments";
  testing::RecordedModel recorded = testing::record_model("mlp:layers=10,width=64", 8, "sgd");
  executor::Device& device = recorded.session->device();
  executor::TrainingStep& step = recorded.session->step();
  // What an update made leaves at once: how fast the copies are that were recorded decides nothing.
  Trace at_once = *recorded.trace;
  for (LinkCurve* const curve : {&at_once.calibration.d2h, &at_once.calibration.h2d}) {
    constexpr std::int64_t kFast = 1'000'000'000'000'000;
    *curve = {{1, 1 << 30}, {kFast, kFast}, {kFast, kFast}, 0};
  }
  const simulator::StepIndex index(at_once);
  const testing::Bits start = testing::bits_of(device, step.parameters());
  const auto drop_gradients = [&] {
    for (const auto& each : step.parameters()) each.tensor.mutable_grad().reset();
  };
  const auto restore = [&] {
    drop_gradients();
    for (std::size_t i = 0; i < start.size(); ++i) {
      testing::store(device, step.parameters()[i].tensor, start[i]);
    }
  };
  std::vector<double> losses;
  for (std::int64_t k = 0; k < 3; ++k) losses.push_back(step.run(k));
  const testing::Bits expected = testing::bits_of(device, step.parameters());

  simulator::Plan rules;
  rules.parameters = simulator::ParameterPlan{{{"layers.*"}}, Stream::always, 0};
  rules.parameters->shards.clear();
  for (int i = 0; i < 10; ++i) rules.parameters->shards.push_back({"layers." + std::to_string(i)});
  const auto lowering = simulator::lower(index, rules);
  ASSERT_TRUE(lowering.ok()) << lowering.error().text();
  const Bytes peak = simulator::replay(index, lowering->schedule).peak_requested;
  const Bytes parameters = all_bytes(lowering->schedule);
  ASSERT_LT(peak, 2 * parameters);

  restore();
  device.set_memory_limit(peak);
  EXPECT_THROW(step.run(0), c10::OutOfMemoryError);
  restore();
  {
    auto plan = executor::PlannedStep::create(device, recorded.trace,
                                              testing::in_test_memory(lowering->schedule),
                                              step.parameters(), {.poison_device = true});
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    for (std::int64_t k = 0; k < 3; ++k) {
      step.prepare(k);
      (*plan)->begin_step();
      EXPECT_EQ(step.step(), losses[static_cast<std::size_t>(k)]);
      ASSERT_TRUE((*plan)->end_step().ok());
    }
    EXPECT_TRUE(testing::bits_of(device, (*plan)->values()) == expected);
    drop_gradients();
  }
  device.set_memory_limit(0);
  EXPECT_TRUE(testing::bits_of(device, step.parameters()) == expected);
}

}  // namespace
}  // namespace stowage
