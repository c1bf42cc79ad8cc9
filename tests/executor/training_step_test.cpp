#include "executor/training_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/executor/model_support.h"
#include "tests/profiler_torch/forwarding_device.h"

namespace stowage::executor {
namespace {

constexpr const char* kGpt2 = "gpt2:layers=2,width=16,heads=2,seq=8,vocab=23,batch=2";
constexpr const char* kLlama =
    "llama3-8b:layers=1,width=32,heads=4,kv_heads=2,hidden=24,seq=8,vocab=23,batch=2";
constexpr const char* kMlp = "mlp:layers=2,width=16,batch=4";

// Copies, since the next step replaces gradients and changes parameters.
std::vector<at::Tensor> copies(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> result;
  for (const NamedTensor& each : named) result.push_back(each.tensor.detach().clone());
  return result;
}

void expect_equal(const std::vector<NamedTensor>& got, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].tensor, expected[i])) << got[i].name;
  }
}

OptimizerSpec spec_of(const std::string& text) {
  const auto spec = parse_optimizer(text);
  EXPECT_TRUE(spec.ok()) << text;
  return *spec;
}

using Case = std::tuple<const char*, const char*>;

class EachModelAndOptimizer : public ::testing::TestWithParam<Case> {};

TEST_P(EachModelAndOptimizer, SameSeedGivesTheSameBits) {
  const auto [text, name] = GetParam();
  const OptimizerSpec optimizer = spec_of(name);
  TrainingStep first = make_test_step(text, optimizer);
  TrainingStep second = make_test_step(text, optimizer);
  TrainingStep other = make_test_step(text, optimizer, /*seed=*/2);
  for (std::int64_t k = 0; k < 3; ++k) {
    const double loss = first.run(k);
    EXPECT_EQ(second.run(k), loss);
    EXPECT_NE(other.run(k), loss);
    expect_equal(second.gradients(), copies(first.gradients()));
    expect_equal(second.parameters(), copies(first.parameters()));
    expect_equal(second.optimizer_state(), copies(first.optimizer_state()));
  }
}

// Says when the device's setup is over: a GPU writes down every allocation until then.
class SetupWatch final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void begin_first_step() override { begun = true; }
  void end_setup() override { ended = begun; }
  bool begun = false;
  bool ended = false;
};

TEST(TrainingStep, EndsTheDevicesSetupWithItsFirstStep) {
  SetupWatch device(test_device());
  TrainingStep step(device, make_test_model(kMlp), {});
  step.prepare(0);
  EXPECT_FALSE(device.begun);
  static_cast<void>(step.step());
  EXPECT_TRUE(device.ended);
}

// Two parts of a batch, and the step of the sum of their losses.
TEST(TrainingStep, CanBeDivided) {
  TrainingStep whole = make_test_step(kMlp);
  TrainingStep divided = make_test_step(kMlp, OptimizerKind::sgd);
  std::vector<at::Tensor> sum;
  double last = 0;
  for (const std::int64_t part : {3, 4}) {
    last = whole.run(part);
    for (std::size_t i = 0; i < whole.gradients().size(); ++i) {
      const at::Tensor gradient = whole.gradients()[i].tensor;
      if (part == 3) {
        sum.push_back(gradient.clone());
      } else {
        sum[i] += gradient;
      }
    }
  }
  divided.begin();
  divided.prepare(3);
  divided.accumulate();
  divided.prepare(4);
  divided.accumulate();
  EXPECT_EQ(divided.end(), last);
  expect_equal(divided.gradients(), sum);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const at::Tensor updated = whole.parameters()[i].tensor - 0.01 * sum[i];
    EXPECT_TRUE(at::allclose(divided.parameters()[i].tensor, updated));
    EXPECT_FALSE(at::equal(divided.parameters()[i].tensor, whole.parameters()[i].tensor));
  }
}

TEST_P(EachModelAndOptimizer, StepsArePeriodicInMemory) {
  const auto [text, name] = GetParam();
  const OptimizerSpec optimizer = spec_of(name);
  TrainingStep step = make_test_step(text, optimizer);
  Bytes peak = 0;
  Bytes begin = 0;
  for (std::int64_t k = 0; k < 6; ++k) {
    step.prepare(k);
    test_device().reset_peak();
    const Bytes at_begin = test_device().memory().requested;
    step.step();
    const MemoryStats stats = test_device().memory();
    if (k >= 2) {
      EXPECT_EQ(at_begin, begin) << "step " << k;
      EXPECT_EQ(stats.peak_requested, peak) << "step " << k;
    }
    peak = stats.peak_requested;
    begin = stats.requested;
  }
}

// What is left after a step is what the step names: parameters, gradients, optimizer state, buffers
// and inputs.
TEST_P(EachModelAndOptimizer, NothingElseIsLeftBehind) {
  const auto [text, name] = GetParam();
  const OptimizerSpec optimizer = spec_of(name);
  const Bytes base = test_device().memory().requested;
  TrainingStep step = make_test_step(text, optimizer);
  step.run(0);
  std::map<const void*, Bytes> storages;
  for (const auto& group : {step.parameters(), step.gradients(), step.optimizer_state(),
                            step.model().buffers(), step.model().inputs()}) {
    for (const NamedTensor& each : group) {
      storages[each.tensor.storage().data()] = static_cast<Bytes>(each.tensor.storage().nbytes());
    }
  }
  Bytes named = 0;
  for (const auto& [data, bytes] : storages) named += bytes;
  EXPECT_EQ(test_device().memory().requested - base, named);
}

INSTANTIATE_TEST_SUITE_P(
    All, EachModelAndOptimizer,
    ::testing::Combine(::testing::Values(kGpt2, kMlp, kLlama,
                                         "gpt2:layers=1,width=16,heads=2,seq=8,vocab=23,batch=2,"
                                         "dropout=0.2,attention=efficient"),
                       ::testing::Values("none", "sgd", "sgd:momentum=0.9", "adam", "adamw",
                                         "adamw:set_to_none=false")));

TEST(TrainingStep, SeveralThreadsRepeatThemselvesToo) {
  ASSERT_TRUE(apply_run_options({.threads = 2}).ok());
  for (const char* const text :
       {"gpt2:layers=1,width=64,heads=2,seq=64,vocab=211,batch=2",
        "llama3-8b:layers=1,width=64,heads=4,kv_heads=2,seq=64,vocab=211,batch=2",
        "llama3-8b:layers=1,width=64,heads=4,kv_heads=2,seq=64,vocab=211,batch=2,"
        "attention=efficient"}) {
    TrainingStep first = make_test_step(text);
    TrainingStep second = make_test_step(text);
    EXPECT_EQ(first.run(0), second.run(0));
    expect_equal(second.gradients(), copies(first.gradients()));
  }
  ASSERT_TRUE(apply_run_options({.threads = 1}).ok());
}

TEST(TrainingStep, DropoutDependsOnTheStepsNumberAlone) {
  const std::string text = std::string(kGpt2) + ",dropout=0.3";
  TrainingStep first = make_test_step(text);
  TrainingStep second = make_test_step(text);
  const double loss = first.run(5);
  second.run(1);
  second.run(3);
  EXPECT_EQ(second.run(5), loss);
  EXPECT_NE(make_test_step(kGpt2).run(5), loss);
}

TEST(TrainingStep, BatchesAreWrittenInPlace) {
  TrainingStep step = make_test_step(kGpt2);
  const auto inputs = step.model().inputs();
  step.prepare(0);
  const void* const place = inputs[0].tensor.const_data_ptr();
  const at::Tensor first = inputs[0].tensor.clone();
  step.prepare(1);
  EXPECT_EQ(step.model().inputs()[0].tensor.const_data_ptr(), place);
  EXPECT_FALSE(at::equal(inputs[0].tensor, first));
  step.prepare(0);
  EXPECT_TRUE(at::equal(inputs[0].tensor, first));
}

TEST(TrainingStep, SgdByHand) {
  TrainingStep step = make_test_step(kMlp, OptimizerKind::sgd);
  const auto before = copies(step.parameters());
  step.run(0);
  const auto gradients = step.gradients();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const at::Tensor expected = before[i] - 0.01 * gradients[i].tensor;
    EXPECT_TRUE(at::allclose(step.parameters()[i].tensor, expected, 1e-6, 1e-8));
  }
  EXPECT_TRUE(step.optimizer_state().empty());
}

// PyTorch's own on the same gradients: the buffer of the first step is the gradient itself, without
// dampening, negative zeros of it too; gradients of what relu or a mask cuts off have both.
TEST(TrainingStep, SgdWithMomentumIsPyTorchs) {
  struct Options {
    const char* text;
    torch::optim::SGDOptions torch;
  };
  const Options all[] = {
      {"sgd:momentum=0.9", torch::optim::SGDOptions(0.01).momentum(0.9)},
      {"sgd:momentum=0.9,dampening=0.25",
       torch::optim::SGDOptions(0.01).momentum(0.9).dampening(0.25)},
      {"sgd:lr=0.5,weight_decay=0.1,momentum=0.5,nesterov=true",
       torch::optim::SGDOptions(0.5).weight_decay(0.1).momentum(0.5).nesterov(true)}};
  for (const auto& [text, torch_options] : all) {
    for (const bool is_made_ahead : {false, true}) {
      SCOPED_TRACE(text + std::string(is_made_ahead ? ", state made ahead" : ""));
      at::Tensor ours = at::tensor({1.0F, -2.0F, 0.0F, 3.0F});
      at::Tensor torchs = ours.clone();
      const auto optimizer = make_optimizer(spec_of(text), {{"w", ours}});
      torch::optim::SGD torch_sgd({torchs}, torch_options);
      if (is_made_ahead) {
        optimizer->make_state({{"w", ours}});
        EXPECT_THROW(static_cast<void>(optimizer->state()[0].tensor.const_data_ptr()), c10::Error);
      }
      for (const float scale : {1.0F, -3.0F, 0.5F}) {
        const at::Tensor gradient = at::tensor({0.0F, -0.0F, -0.0F, 0.7F}) * scale;
        ours.mutable_grad() = gradient;
        torchs.mutable_grad() = gradient;
        optimizer->step();
        torch_sgd.step();
        const auto state = optimizer->state();
        ASSERT_EQ(state.size(), 1u);
        EXPECT_EQ(state[0].name, "w.momentum_buffer");
        const at::Tensor& buffer = static_cast<const torch::optim::SGDParamState&>(
                                       *torch_sgd.state().at(torchs.unsafeGetTensorImpl()))
                                       .momentum_buffer();
        // Bits: 0 == -0.
        EXPECT_TRUE(state[0].tensor.view(at::kInt).equal(buffer.view(at::kInt)));
        EXPECT_TRUE(ours.view(at::kInt).equal(torchs.view(at::kInt)));
      }
    }
  }
}

// Warm-up over 2 steps, then half a cosine over 4.
TEST(RateFactor, RisesAndFalls) {
  const RateSchedule cosine{2, Decay::cosine, 6};
  const double half = std::sqrt(0.5) / 2;
  const double expected[] = {0.5, 1, 1, 0.5 + half, 0.5, 0.5 - half, 0, 0};
  const RateSchedule linear{2, Decay::linear, 6};
  const double linearly[] = {0.5, 1, 1, 0.75, 0.5, 0.25, 0, 0};
  for (std::int64_t k = 0; k < 8; ++k) {
    EXPECT_NEAR(rate_factor(cosine, k), expected[k], 1e-15) << k;
    EXPECT_EQ(rate_factor(linear, k), linearly[k]) << k;
    EXPECT_EQ(rate_factor({}, k), 1);
    EXPECT_EQ(rate_factor({4}, k), k < 3 ? 0.25 * static_cast<double>(k + 1) : 1);
  }
  EXPECT_EQ(rate_factor(cosine, 6), 0);
}

// A skipped update has its step of the schedule too; a step that throws has not.
TEST(TrainingStep, SgdWithAScheduleByHand) {
  for (const char* const spec : {"sgd:lr=0.5,warmup=2,decay=linear,total=6",
                                 "sgd:update=backward,lr=0.5,warmup=2,decay=linear,total=6"}) {
    const bool in_backward = spec_of(spec).in_backward;
    TrainingStep step = make_test_step(kMlp, spec_of(spec));
    TrainingStep plain = make_test_step(kMlp);  // the gradients
    for (const double rate : {0.25, 0.5, 0.5, 0.375, 0.25, 0.125, 0.0, 0.0}) {
      SCOPED_TRACE(rate);
      expect_equal(plain.parameters(), copies(step.parameters()));
      const bool skips = rate == 0.375 && !in_backward;
      step.prepare(0);
      if (rate == 0.25) {
        step.set_phase_hook([](PhaseKind phase) {
          if (phase == PhaseKind::forward) throw std::runtime_error("planted");
        });
        EXPECT_THROW(step.step(), std::runtime_error);
        step.set_phase_hook({});
      }
      EXPECT_EQ(step.step(skips ? Update::skipped : Update::taken), plain.run(0));
      const at::NoGradGuard no_grad;
      for (const NamedTensor& each : plain.parameters()) {
        at::Tensor weights = each.tensor;
        if (!skips) weights.add_(each.tensor.grad(), -1 * rate);
      }
    }
    expect_equal(plain.parameters(), copies(step.parameters()));
  }
}

TEST(TrainingStep, AdamWByHand) {
  TrainingStep step = make_test_step(kMlp, OptimizerKind::adamw);
  EXPECT_TRUE(step.optimizer_state().empty()) << "made by the first step";
  const auto before = copies(step.parameters());
  step.run(0);
  const auto gradients = step.gradients();
  const auto state = step.optimizer_state();
  ASSERT_EQ(state.size(), 2 * before.size());
  EXPECT_EQ(state[0].name, "layers.0.up.weight.exp_avg");
  EXPECT_EQ(state[1].name, "layers.0.up.weight.exp_avg_sq");
  for (std::size_t i = 0; i < before.size(); ++i) {
    const at::Tensor& g = gradients[i].tensor;
    // First step: both averages, bias corrected, are g and g^2; weight decay 0.01, rate 0.001.
    const at::Tensor expected = before[i] * (1 - 1e-3 * 1e-2) - 1e-3 * g / (g.abs() + 1e-8);
    EXPECT_TRUE(at::allclose(step.parameters()[i].tensor, expected, 1e-5, 1e-7));
    EXPECT_TRUE(at::allclose(state[2 * i].tensor, 0.1 * g, 1e-5, 1e-9));
    EXPECT_TRUE(at::allclose(state[2 * i + 1].tensor, 0.001 * g * g, 1e-4, 1e-12));
  }
}

// Of parameters that are in fp32 the masters are equal, and everything is as without.
TEST(TrainingStep, MastersOfFp32AreTheParameters) {
  struct Pair {
    const char* without;
    const char* with;
    std::size_t pieces;  // of a parameter, without its master
  };
  for (const Pair& each :
       {Pair{"adam", "adam:master=fp32", 2},
        {"adamw", "adamw:master=fp32", 2},
        {"sgd", "sgd:master=fp32", 0},
        {"sgd:momentum=0.9,dampening=0.5", "sgd:master=fp32,momentum=0.9,dampening=0.5", 1}}) {
    SCOPED_TRACE(each.with);
    TrainingStep without = make_test_step(kMlp, spec_of(each.without));
    TrainingStep with = make_test_step(kMlp, spec_of(each.with));
    for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(with.run(k), without.run(k));
    expect_equal(with.parameters(), copies(without.parameters()));
    const auto state = with.optimizer_state();
    const auto plain_state = without.optimizer_state();
    const std::size_t parameters = with.parameters().size();
    ASSERT_EQ(state.size(), (each.pieces + 1) * parameters);
    for (std::size_t i = 0; i < parameters; ++i) {
      const std::size_t master = (each.pieces + 1) * i;
      EXPECT_EQ(state[master].name, with.parameters()[i].name + ".master");
      EXPECT_TRUE(state[master].tensor.equal(with.parameters()[i].tensor));
      for (std::size_t p = 0; p < each.pieces; ++p) {
        EXPECT_TRUE(state[master + 1 + p].tensor.equal(plain_state[each.pieces * i + p].tensor));
      }
    }
  }
}

// State was made for a plan that then could not be: the step makes it as ever.
TEST(TrainingStep, StateThatNoPlanTookIsMadeByTheStep) {
  for (const char* const text :
       {"adam", "adamw:master=fp32", "sgd:momentum=0.9", "sgd:master=fp32,momentum=0.9"}) {
    TrainingStep undisturbed = make_test_step(kMlp, spec_of(text));
    TrainingStep step = make_test_step(kMlp, spec_of(text));
    const auto unmade = step.state_maker()(step.parameters());
    ASSERT_FALSE(unmade.empty());
    EXPECT_THROW(static_cast<void>(unmade[0].tensor.const_data_ptr()), c10::Error);
    for (std::int64_t k = 0; k < 2; ++k) EXPECT_EQ(step.run(k), undisturbed.run(k));
    expect_equal(step.optimizer_state(), copies(undisturbed.optimizer_state()));
    expect_equal(step.parameters(), copies(undisturbed.parameters()));
  }
}

// In bf16 a parameter is its master, rounded; the master moves by less than the parameter can.
TEST(TrainingStep, MastersKeepWhatBf16Loses) {
  TrainingStep step = make_test_step(std::string(kMlp) + ",dtype=bf16",
                                     {OptimizerKind::adamw, /*has_master=*/true});
  const auto begin = copies(step.parameters());
  for (std::int64_t k = 0; k < 2; ++k) step.run(k);
  const auto state = step.optimizer_state();
  bool finer = false;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const at::Tensor& master = state[3 * i].tensor;
    EXPECT_EQ(master.scalar_type(), at::kFloat);
    EXPECT_EQ(state[3 * i + 1].tensor.scalar_type(), at::kFloat);
    EXPECT_TRUE(master.to(at::kBFloat16).equal(step.parameters()[i].tensor));
    finer = finer || !master.equal(step.parameters()[i].tensor.to(at::kFloat));
  }
  EXPECT_TRUE(finer);
}

// Each parameter as its gradient arrives, or all behind backward: the same training, in which no
// gradient is left. gpt2's embedding is its head, too: its one gradient is the sum of both.
TEST(TrainingStep, UpdatesInBackwardComputeTheSame) {
  for (const char* const model : {kMlp, kGpt2}) {
    for (const std::string text : {"sgd", "adamw", "adamw:master=fp32", "sgd:momentum=0.9",
                                   "sgd:master=fp32,momentum=0.9"}) {
      OptimizerSpec spec = spec_of(text);
      TrainingStep behind = make_test_step(model, spec);
      spec.in_backward = true;
      TrainingStep inside = make_test_step(model, spec);
      for (std::int64_t k = 0; k < 3; ++k) {
        EXPECT_EQ(inside.run(k), behind.run(k));
        EXPECT_TRUE(inside.gradients().empty());
        expect_equal(inside.parameters(), copies(behind.parameters()));
        expect_equal(inside.optimizer_state(), copies(behind.optimizer_state()));
      }
    }
  }
}

// The sums are the same: 0 + g is g, but for the sign of zeros, which no update sees here.
TEST(TrainingStep, GradientsThatAreKeptAreTheSameTensorsAndSums) {
  for (const std::string text : {"sgd", "adamw:master=fp32", "sgd:clip=0.01,momentum=0.9"}) {
    TrainingStep dropped = make_test_step(kGpt2, spec_of(text));
    OptimizerSpec spec = spec_of(text);
    spec.keeps_gradients = true;
    TrainingStep kept = make_test_step(kGpt2, spec);
    std::vector<const void*> places;
    for (std::int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(kept.run(k), dropped.run(k));
      expect_equal(kept.gradients(), copies(dropped.gradients()));
      expect_equal(kept.parameters(), copies(dropped.parameters()));
      std::vector<const void*> now;
      for (const NamedTensor& each : kept.gradients()) now.push_back(each.tensor.const_data_ptr());
      EXPECT_TRUE(k == 0 || now == places);
      places = std::move(now);
    }
  }
}

TEST(TrainingStep, UpdatesInBackwardTakeOneGradientAtATime) {
  const auto peak = [](bool in_backward) {
    TrainingStep step =
        make_test_step("mlp:layers=6", {OptimizerKind::sgd, /*has_master=*/false, in_backward});
    step.run(0);
    Bytes begin = test_device().memory().requested;  // without the gradients, which go first
    for (const NamedTensor& each : step.gradients())
      begin -= static_cast<Bytes>(each.tensor.nbytes());
    test_device().reset_peak();
    step.run(1);
    return test_device().memory().peak_requested - begin;
  };
  TrainingStep step = make_test_step("mlp:layers=6");
  step.run(0);
  Bytes all = 0;
  for (const NamedTensor& each : step.gradients()) all += static_cast<Bytes>(each.tensor.nbytes());
  EXPECT_LT(peak(true), peak(false) - all / 2);
}

// The text of what `body` throws.
template <class Body>
std::string thrown_by(Body&& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

TEST(TrainingStep, UpdatesInBackwardAskForOneWholeBackward) {
  const OptimizerSpec sgd(OptimizerKind::sgd, /*has_master=*/false, /*is_in_backward=*/true);
  TrainingStep step = make_test_step(kMlp, sgd);
  step.run(0);
  step.prepare(1);
  const auto divided = [&] {
    step.begin();
    step.accumulate();
    step.accumulate();
  };
  EXPECT_NE(thrown_by(divided).find("has one backward: it cannot be divided"), std::string::npos);
  const auto skipped = [&] { step.step(Update::skipped); };
  EXPECT_NE(thrown_by(skipped).find("cannot be skipped"), std::string::npos);
  // Somebody else's backward, as that of a tail in parts.
  const auto outside = [&] {
    step.begin();
    step.model().forward().tensor.backward();
  };
  const std::string text = thrown_by(outside);
  EXPECT_NE(text.find("arrives ahead of the step's backward"), std::string::npos) << text;
  // The next step is clean again, where nothing was updated and an optimizer has no state.
  TrainingStep undisturbed = make_test_step(kMlp, sgd);
  const auto to = step.parameters();
  const auto from = undisturbed.parameters();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  const at::AutoGradMode with_grad(true);
  EXPECT_EQ(step.run(1), undisturbed.run(1));
}

TEST(TrainingStep, PhasesBeginInOrder) {
  TrainingStep step = make_test_step(kMlp, OptimizerKind::adam);
  std::vector<PhaseKind> phases;
  std::size_t gradients_in_forward = 99;
  step.run(0);
  EXPECT_EQ(step.gradients().size(), step.parameters().size());
  step.set_phase_hook([&](PhaseKind phase) {
    phases.push_back(phase);
    if (phase == PhaseKind::forward) gradients_in_forward = step.gradients().size();
  });
  step.run(1);
  EXPECT_EQ(phases, (std::vector<PhaseKind>{PhaseKind::zero_grad, PhaseKind::forward,
                                            PhaseKind::backward, PhaseKind::optimizer}));
  EXPECT_EQ(gradients_in_forward, 0u) << "set to none before forward";
}

// Out of memory in forward or in backward: nothing leaks, and the next step is as if nothing had
// been.
TEST(TrainingStep, AFailedStepLeavesNoTrace) {
  TrainingStep step = make_test_step(kGpt2);
  TrainingStep undisturbed = make_test_step(kGpt2);
  step.run(0);
  undisturbed.run(0);
  step.prepare(1);
  test_device().reset_peak();
  const Bytes begin = test_device().memory().requested;
  step.step();
  const Bytes peak = test_device().memory().peak_requested;
  Bytes gradients = 0;
  for (const auto& each : step.gradients()) gradients += static_cast<Bytes>(each.tensor.nbytes());
  int failures = 0;
  for (Bytes limit = begin - gradients + 1000; limit < peak; limit += 1500) {
    test_device().set_memory_limit(limit);
    EXPECT_THROW(step.step(), c10::OutOfMemoryError) << limit;
    test_device().set_memory_limit(0);
    ++failures;
    Bytes left = 0;
    for (const auto& each : step.gradients()) left += static_cast<Bytes>(each.tensor.nbytes());
    EXPECT_EQ(test_device().memory().requested, begin - gradients + left);
  }
  EXPECT_GT(failures, 5);
  test_device().set_memory_limit(peak);
  EXPECT_EQ(step.run(1), undisturbed.run(1));
  test_device().set_memory_limit(0);
  expect_equal(step.gradients(), copies(undisturbed.gradients()));
}

TEST(TrainingStep, OptimizerNames) {
  for (const char* const name : {"none",
                                 "sgd",
                                 "adam",
                                 "adamw",
                                 "adam:master=fp32",
                                 "adamw:master=fp32",
                                 "sgd:update=backward",
                                 "adamw:update=backward",
                                 "adam:master=fp32,update=backward",
                                 "sgd:lr=0.5",
                                 "adamw:master=fp32,lr=0.0003,clip=1",
                                 "sgd:clip=0.25",
                                 "sgd:master=fp32",
                                 "sgd:lr=0.1,weight_decay=0.0001,momentum=0.9,nesterov=true",
                                 "adamw:weight_decay=0",
                                 "sgd:momentum=0.9,dampening=0.1",
                                 "adamw:lr=0.0003,warmup=100,decay=cosine,total=1000",
                                 "sgd:warmup=3",
                                 "sgd:set_to_none=false",
                                 "adam:decay=linear,total=8"}) {
    const auto spec = parse_optimizer(name);
    ASSERT_TRUE(spec.ok());
    EXPECT_EQ(to_string(*spec), name);
  }
  EXPECT_EQ(to_string(*parse_optimizer("adam:update=backward,master=fp32,update=backward")),
            "adam:master=fp32,update=backward");
  const std::pair<const char*, const char*> refused[] = {
      {"adam:momentum=0.9",
       "'adam' has no option 'momentum=0.9' (its options are master=fp32, update=backward, "
       "lr=NUMBER, clip=NUMBER, weight_decay=NUMBER, set_to_none=false, "
       "warmup=STEPS, decay=linear|cosine, "
       "total=STEPS)"},
      {"adam:decay=step", "decay=step is not allowed (decay=linear|cosine)"},
      {"adam:decay=none", "decay=none is not allowed"},
      {"adam:warmup=1.5", "warmup=1.5 is not allowed (warmup=STEPS)"},
      {"adam:warmup=0", "warmup=0 is not allowed"},
      {"sgd:decay=linear", "decay and total go together"},
      {"sgd:total=10", "decay and total go together"},
      {"sgd:set_to_none=true", "set_to_none=true is not allowed (set_to_none=false)"},
      {"sgd:set_to_none=false,update=backward", "set_to_none=false with update=backward"},
      {"sgd:warmup=10,decay=linear,total=10", "the warm-up takes all of total=10"},
      {"none:update=backward", "'none' has no option 'update=backward' (none has no options)"},
      {"adamw:", "'adamw' has no option ''"},
      {"adamw:master=fp32,", "'adamw' has no option ''"},
      {"adamw:master", "'adamw' has no option 'master' (its options are master=fp32, "},
      {"sgd:master=fp16", "master=fp16 is not allowed (master=fp32)"},
      {"sgd:lr=0", "lr=0 is not allowed (lr=NUMBER above 0)"},
      {"sgd:lr=1e999", "lr=1e999 is not allowed"},
      {"adam:clip=big", "clip=big is not allowed (clip=NUMBER above 0)"},
      {"sgd:momentum=-1", "momentum=-1 is not allowed (momentum=NUMBER from 0 on)"},
      {"sgd:nesterov=true", "dampening and nesterov are of a momentum"},
      {"sgd:momentum=0.9,nesterov=true,dampening=0.5", "nesterov with dampening"},
      {"none:lr=1", "'none' has no option 'lr=1'"},
      {"adamw:clip=1,update=backward", "clip with update=backward"}};
  for (const auto& [text, said] : refused) {
    const auto spec = parse_optimizer(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::usage);
    EXPECT_NE(spec.error().text().find(said), std::string::npos) << spec.error().text();
  }
  const auto wrong = parse_optimizer("adamv");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::usage);
  EXPECT_NE(wrong.error().text().find("did you mean 'adam"), std::string::npos);
}

TEST(RunOptions, SetsAndReports) {
  test_device();
  const RunOptions before = current_run_options();
  ASSERT_TRUE(apply_run_options({.deterministic = false, .threads = 2}).ok());
  EXPECT_FALSE(current_run_options().deterministic);
  EXPECT_EQ(current_run_options().threads, 2);
  EXPECT_FALSE(at::globalContext().deterministicFillUninitializedMemory());
  ASSERT_TRUE(apply_run_options({.deterministic = true, .threads = before.threads}).ok());
  EXPECT_TRUE(current_run_options().deterministic);
  for (const std::int64_t threads : {std::int64_t{-1}, std::int64_t{100'000}}) {
    const auto refused = apply_run_options({.threads = threads});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::usage);
  }
  EXPECT_EQ(current_run_options().threads, before.threads) << "a refusal changes nothing";
}

}  // namespace
}  // namespace stowage::executor
