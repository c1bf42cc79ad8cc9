// What the tests of models and steps share: the process's CPU device and steps made of a spec.
#pragma once

#include <gtest/gtest.h>

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
                                   OptimizerKind optimizer = OptimizerKind::none,
                                   std::int64_t seed = 1) {
  return {test_device(), make_test_model(text, seed), {.optimizer = optimizer, .seed = seed}};
}

}  // namespace stowage::executor
