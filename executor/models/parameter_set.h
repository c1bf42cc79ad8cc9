// The parameters of a built-in model while it is made: named leaf tensors, drawn from one generator
// in the order of creation, so that the same seed gives the same bits.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "executor/model.h"

namespace stowage::executor {

class ParameterSet {
 public:
  ParameterSet(c10::Device device, at::ScalarType dtype, std::int64_t seed);

  at::Tensor normal(const std::string& name, at::IntArrayRef sizes, double deviation);
  at::Tensor constant(const std::string& name, at::IntArrayRef sizes, double value);

  [[nodiscard]] const std::vector<NamedTensor>& all() const { return parameters_; }
  [[nodiscard]] at::TensorOptions options() const { return options_; }

 private:
  at::Tensor add(const std::string& name, at::Tensor tensor);

  at::TensorOptions options_;
  at::Generator generator_;
  std::vector<NamedTensor> parameters_;
};

// A generator of its own for whoever draws numbers outside the step, on the device that draws: the
// same seed gives the same bits on one kind of device, and other bits on another kind.
[[nodiscard]] at::Generator make_generator(c10::Device device, std::int64_t seed);

}  // namespace stowage::executor
