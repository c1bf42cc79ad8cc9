// What the tests of models and steps share: the process's CPU device and steps made of a spec.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/cpu_device.h"
#include "executor/model.h"
#include "executor/run_options.h"
#include "executor/training_step.h"

namespace stowage::executor {

// The first caller must come before the first tensor. One intra-op thread: on a busy machine the
// barriers of several cost more than these small steps do.
inline CpuDevice& test_device() {
  static CpuDevice* const device = [] {
    auto made = cpu_device();
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE(apply_run_options({.threads = 1}).ok());
    return *made;
  }();
  return *device;
}

inline std::unique_ptr<Model> make_test_model(const std::string& text, std::int64_t seed = 1) {
  auto spec = parse_model_spec(text);
  EXPECT_TRUE(spec.ok()) << text;
  auto model = make_model(*spec, test_device().torch_device(), seed);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return std::move(model).value();
}

inline TrainingStep make_test_step(const std::string& text,
                                   const OptimizerSpec& optimizer = OptimizerKind::none,
                                   std::int64_t seed = 1) {
  return {test_device(), make_test_model(text, seed), {.optimizer = optimizer, .seed = seed}};
}

// A step in bf16 and one in fp32 of the same values (parameters and batch, both rounded to bf16).
// Each value of the bf16 one has a relative error of up to 2^-9, which adds up over the layers:
// losses within `loss_error`, each gradient within `gradient_error` of its norm, or of the largest
// norm where it is small beside that. Returns the loss in fp32.
inline double expect_bf16_near_fp32(const std::string& spec, double loss_error,
                                    double gradient_error) {
  TrainingStep wide = make_test_step(spec);
  TrainingStep narrow = make_test_step(spec + ",dtype=bf16");
  const auto take = [](const std::vector<NamedTensor>& to, const std::vector<NamedTensor>& from) {
    const at::NoGradGuard no_grad;
    ASSERT_EQ(to.size(), from.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  };
  narrow.prepare(0);
  wide.prepare(0);
  take(wide.parameters(), narrow.parameters());
  take(wide.model().inputs(), narrow.model().inputs());
  EXPECT_EQ(narrow.parameters()[0].tensor.scalar_type(), at::kBFloat16);
  const double loss = wide.step();
  EXPECT_NEAR(narrow.step(), loss, loss_error);
  const std::vector<NamedTensor> gradients = narrow.gradients();
  const std::vector<NamedTensor> right = wide.gradients();
  EXPECT_EQ(right.size(), wide.parameters().size());
  EXPECT_EQ(gradients.size(), right.size());
  double largest = 0;
  for (const NamedTensor& each : right) {
    largest = std::max(largest, each.tensor.norm().item<double>());
  }
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i < std::min(gradients.size(), right.size()); ++i) {
    EXPECT_EQ(gradients[i].tensor.scalar_type(), at::kBFloat16);
    const at::Tensor apart = gradients[i].tensor.to(at::kFloat) - right[i].tensor;
    const double norm = std::max(right[i].tensor.norm().item<double>(), largest / 100);
    EXPECT_LE(apart.norm().item<double>(), gradient_error * norm) << right[i].name;
  }
  return loss;
}

}  // namespace stowage::executor
