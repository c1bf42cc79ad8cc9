#include "executor/models/parameter_set.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <utility>

namespace stowage::executor {

at::Generator make_generator(std::int64_t seed) {
  return at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
}

ParameterSet::ParameterSet(c10::Device device, at::ScalarType dtype, std::int64_t seed)
    : options_(at::TensorOptions().device(device).dtype(dtype)), generator_(make_generator(seed)) {}

at::Tensor ParameterSet::add(const std::string& name, at::Tensor tensor) {
  tensor.requires_grad_(true);
  parameters_.push_back({name, tensor});
  return tensor;
}

at::Tensor ParameterSet::normal(const std::string& name, at::IntArrayRef sizes, double deviation) {
  return add(name, at::empty(sizes, options_).normal_(0.0, deviation, generator_));
}

at::Tensor ParameterSet::constant(const std::string& name, at::IntArrayRef sizes, double value) {
  return add(name, at::full(sizes, value, options_));
}

}  // namespace stowage::executor
