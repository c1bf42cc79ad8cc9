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

// A weight and a bias: of a linear layer, or of a norm.
struct Affine {
  at::Tensor weight, bias;
};

class ParameterSet {
 public:
  ParameterSet(c10::Device device, at::ScalarType dtype, std::int64_t seed);

  at::Tensor normal(const std::string& name, at::IntArrayRef sizes, double deviation);
  at::Tensor constant(const std::string& name, at::IntArrayRef sizes, double value);
  // `name`.weight and `name`.bias: [out, in] drawn, [out] zero.
  Affine linear(const std::string& name, std::int64_t in, std::int64_t out, double deviation);
  // `name`.weight and `name`.bias of a norm over `width` features or channels: one and zero.
  Affine norm(const std::string& name, std::int64_t width);
  // The weight of a convolution with square kernels, in the given memory format; the same numbers
  // in each.
  at::Tensor kernels(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t edge,
                     double deviation, at::MemoryFormat format);

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
