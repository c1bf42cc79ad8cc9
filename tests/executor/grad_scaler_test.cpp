#include "executor/grad_scaler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "executor/division.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

constexpr const char* kGpt2 = "gpt2:layers=1,width=16,heads=2,seq=8,vocab=23,batch=2";

TEST(GradScalerSpec, Options) {
  EXPECT_EQ(to_string(*parse_grad_scaler("on")), "init=65536,growth=2,backoff=0.5,interval=2000");
  EXPECT_EQ(to_string(*parse_grad_scaler("interval=3,init=0.1,backoff=0.25,growth=1.5")),
            "init=0.1,growth=1.5,backoff=0.25,interval=3");
  EXPECT_EQ(*parse_grad_scaler(to_string(GradScalerSpec{})), GradScalerSpec{});
  const std::pair<const char*, const char*> refused[] = {
      {"", "has no option ''"},
      {"off", "has no option 'off'"},
      {"init=1,", "has no option ''"},
      {"init=0", "init=0 is not allowed (a number above 0)"},
      {"init=1e39", "init=1e39 is not allowed"},
      {"init=1e-60", "init=1e-60 is not allowed"},
      {"init=nan", "init=nan is not allowed"},
      {"growth=1", "growth=1 is not allowed (a number above 1)"},
      {"backoff=1", "backoff=1 is not allowed (a number above 0 and below 1)"},
      {"interval=0", "interval=0 is not allowed (a whole number from 1 on)"},
      {"interval=1.5", "interval=1.5 is not allowed"},
      {"interval=3000000000", "interval=3000000000 is not allowed"}};
  for (const auto& [text, said] : refused) {
    const auto spec = parse_grad_scaler(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::usage);
    EXPECT_NE(spec.error().text().find(said), std::string::npos) << spec.error().text();
  }
}

float scale_of(const GradScaler& scaler) {
  return scaler.scale().item<float>();
}

// growth 2 behind 2 good steps, backoff 1/2: 8, good, good -> 16, inf -> 8, nan -> 4, good, good
// -> 8.
TEST(GradScaler, ScaleGrowsAndBacksOff) {
  GradScaler scaler({.init = 8, .growth = 2, .backoff = 0.5, .interval = 2},
                    test_device().torch_device());
  at::Tensor weight = at::zeros({3}).set_requires_grad(true);
  const std::vector<NamedTensor> parameters = {{"weight", weight},
                                               {"unused", at::zeros({2}).set_requires_grad(true)}};
  const float inf = std::numeric_limits<float>::infinity();
  const std::pair<float, float> steps[] = {{24, 8}, {48, 16}, {inf, 8}, {NAN, 4}, {12, 4}, {6, 8}};
  for (const auto& [gradient, next] : steps) {
    weight.mutable_grad() = at::full({3}, gradient);
    const float scale = scale_of(scaler);
    EXPECT_EQ(scaler.unscale(parameters), !std::isfinite(gradient));
    if (std::isfinite(gradient)) {
      EXPECT_EQ(weight.grad()[2].item<float>(), gradient / scale);
    }
    scaler.update();
    EXPECT_EQ(scale_of(scaler), next);
  }
  EXPECT_EQ(scaler.state().size(), 2U);
}

TrainingStep scaled_step(const char* model, const GradScalerSpec& scaler,
                         const OptimizerSpec& optimizer = OptimizerKind::sgd) {
  return {test_device(),
          make_test_model(model),
          {.optimizer = optimizer, .seed = 1, .grad_scaler = scaler}};
}

void expect_same(const std::vector<NamedTensor>& got, const std::vector<NamedTensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].tensor, expected[i].tensor)) << got[i].name;
  }
}

// Powers of two change no bit of a step that neither overflows nor underflows.
TEST(ScaledStep, PowersOfTwoChangeNoBit) {
  for (const char* const model :
       {kGpt2, "llama3-8b:layers=1,width=32,heads=4,kv_heads=2,hidden=24,seq=8,vocab=23,batch=2"}) {
    TrainingStep scaled = scaled_step(model, {.init = 1024, .interval = 2});
    TrainingStep plain = make_test_step(model, OptimizerKind::sgd);
    for (std::int64_t k = 0; k < 5; ++k) {
      EXPECT_EQ(scaled.run(k), plain.run(k));
      expect_same(scaled.gradients(), plain.gradients());
      expect_same(scaled.parameters(), plain.parameters());
    }
    EXPECT_EQ(scaled.buffers().back().name, "grad_scaler.growth_tracker");
    EXPECT_EQ(scaled.buffers()[scaled.buffers().size() - 2].tensor.item<float>(), 4096);
  }
}

// A scale that overflows: nothing is updated, the scale halves, until a step fits; that one is the
// first step of one without a scaler.
TEST(ScaledStep, AnOverflowSkipsTheUpdate) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    TrainingStep scaled = scaled_step(kGpt2, {.init = 0x1p127, .backoff = 0x1p-60}, kind);
    TrainingStep plain = make_test_step(kGpt2, kind);
    const auto scale = [&] { return scaled.buffers()[scaled.buffers().size() - 2].tensor; };
    std::vector<at::Tensor> before;
    for (const NamedTensor& each : scaled.parameters()) before.push_back(each.tensor.clone());
    static_cast<void>(scaled.run(7));
    EXPECT_EQ(scale().item<float>(), 0x1p67F);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(scaled.parameters()[i].tensor, before[i]));
    }
    EXPECT_TRUE(scaled.optimizer_state().empty());
    EXPECT_TRUE(scaled.written_optimizer_state().empty());
    for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(scaled.run(k), plain.run(k));
    expect_same(scaled.parameters(), plain.parameters());
    expect_same(scaled.optimizer_state(), plain.optimizer_state());
    expect_same(scaled.written_optimizer_state(), plain.optimizer_state());
  }
}

// The parts of a tail have the scale, whose backwards are inside of forward.
TEST(ScaledStep, PartsAreScaled) {
  for (const char* const segment : {"head", "*"}) {
    TrainingStep scaled = scaled_step(kGpt2, {.init = 4096});
    TrainingStep plain = make_test_step(kGpt2, OptimizerKind::sgd);
    Division division({{segment, 2}});
    const InstalledDriver divided(division);
    for (std::int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(scaled.run(k), plain.run(k));
      expect_same(scaled.gradients(), plain.gradients());
      expect_same(scaled.parameters(), plain.parameters());
    }
    EXPECT_TRUE(division.unasked().empty());
  }
}

TEST(ScaledStep, NeedsAnUpdateBehindBackward) {
  OptimizerSpec in_backward(OptimizerKind::sgd);
  in_backward.in_backward = true;
  for (const OptimizerSpec& optimizer : {OptimizerSpec(OptimizerKind::none), in_backward}) {
    EXPECT_THROW(static_cast<void>(scaled_step(kGpt2, {}, optimizer)), c10::Error);
  }
}

// Against the norm computed in fp64; below the norm not a bit changes.
TEST(ClippedStep, IsAsPyTorchClips) {
  OptimizerSpec clipped(OptimizerKind::sgd);
  clipped.clip = 1e-3;
  clipped.learning_rate = 0.5;
  TrainingStep step = make_test_step(kGpt2, clipped);
  TrainingStep plain = make_test_step(kGpt2, OptimizerKind::none);
  std::vector<at::Tensor> before;
  for (const NamedTensor& each : step.parameters()) before.push_back(each.tensor.clone());
  EXPECT_EQ(step.run(0), plain.run(0));
  double square = 0;
  for (const NamedTensor& each : plain.gradients()) {
    square += each.tensor.to(at::kDouble).square().sum().item<double>();
  }
  const double factor = clipped.clip / std::sqrt(square);
  ASSERT_LT(factor, 1);
  const std::vector<NamedTensor> gradients = plain.gradients();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const at::Tensor expected = gradients[i].tensor * factor;
    EXPECT_TRUE(at::allclose(step.gradients()[i].tensor, expected, 1e-3, 1e-9));
    EXPECT_TRUE(
        at::equal(step.parameters()[i].tensor, before[i].add(step.gradients()[i].tensor, -0.5)));
  }
  clipped.clip = 1e6;
  TrainingStep wide = make_test_step(kGpt2, clipped);
  static_cast<void>(wide.run(0));
  expect_same(wide.gradients(), plain.gradients());
}

}  // namespace
}  // namespace stowage::executor
