// What tests/data/export_scripts.py has written of one step of a model in Python, against the step
// that Stowage runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/training_step.h"

namespace stowage::scripts_tests {

inline std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The model of an exported script.
inline std::string script_in(const std::string& folder, const std::string& name) {
  std::string options = text_of(folder + "/" + name + ".spec");
  options.erase(options.find('\n'));
  return "script:" + folder + "/" + name + ".pt:" + options;
}

inline void expect_close(double value, double expected, double scale, const std::string& what) {
  EXPECT_LE(std::abs(value - expected), 2e-5 * scale + 1e-12)
      << what << ": " << value << " against " << expected;
}

// As `figures` of export_scripts.py has it.
inline void expect_figures(const executor::NamedTensor& each, const nlohmann::json& figures) {
  const auto absmax = figures.at("absmax").get<double>();
  expect_close(each.tensor.abs().max().item<double>(), absmax, absmax, each.name + " absmax");
  const at::Tensor flat = each.tensor.detach().contiguous().view({-1});
  const auto every = figures.at("every").get<std::int64_t>();
  std::int64_t at = 0;
  for (const nlohmann::json& element : figures.at("elements")) {
    expect_close(flat[at].item<double>(), element.get<double>(), absmax, each.name);
    at += every;
  }
}

// A step of `step` gives what Python's gave; names[i] is Python's name of parameter i.
inline void expect_pythons_step(executor::TrainingStep& step, const nlohmann::json& python,
                                const std::vector<std::string>& names) {
  const double loss = step.run(0);
  const auto expected = python.at("loss").get<double>();
  expect_close(loss, expected, std::max(1.0, std::abs(expected)), "loss");
  const std::vector<executor::NamedTensor> gradients = step.gradients();
  ASSERT_EQ(gradients.size(), python.at("gradients").size());
  ASSERT_EQ(gradients.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    ASSERT_TRUE(python.at("gradients").contains(names[i])) << names[i];
    expect_figures(gradients[i], python.at("gradients").at(names[i]));
  }
  std::size_t compared = 0;
  for (const executor::NamedTensor& each : step.model().buffers()) {
    if (!python.at("buffers").contains(each.name)) continue;
    expect_figures(each, python.at("buffers").at(each.name));
    ++compared;
  }
  EXPECT_EQ(compared, python.at("buffers").size());
}

inline nlohmann::json python_of(const std::string& folder, const std::string& name) {
  return nlohmann::json::parse(text_of(folder + "/" + name + ".json"));
}

}  // namespace stowage::scripts_tests
