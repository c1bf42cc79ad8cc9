#include "executor/models/parameter_set.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <utility>

namespace stowage::executor {

at::Generator make_generator(c10::Device device, std::int64_t seed) {
  const auto number = static_cast<std::uint64_t>(seed);
  if (device.is_cpu()) return at::detail::createCPUGenerator(number);
  at::Generator generator = at::globalContext()
                                .getAcceleratorHooksInterface(device.type())
                                .getNewGenerator(device.index());
  generator.set_current_seed(number);
  return generator;
}

ParameterSet::ParameterSet(c10::Device device, at::ScalarType dtype, std::int64_t seed)
    : options_(at::TensorOptions().device(device).dtype(dtype)),
      generator_(make_generator(device, seed)) {}

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

Affine ParameterSet::linear(const std::string& name, std::int64_t in, std::int64_t out,
                            double deviation) {
  at::Tensor weight = normal(name + ".weight", {out, in}, deviation);
  return {std::move(weight), constant(name + ".bias", {out}, 0)};
}

Affine ParameterSet::norm(const std::string& name, std::int64_t width) {
  at::Tensor weight = constant(name + ".weight", {width}, 1);
  return {std::move(weight), constant(name + ".bias", {width}, 0)};
}

at::Tensor ParameterSet::kernels(const std::string& name, std::int64_t in, std::int64_t out,
                                 std::int64_t edge, double deviation, at::MemoryFormat format) {
  const std::vector<std::int64_t> sizes{out, in, edge, edge};
  at::Tensor drawn = at::empty(sizes, options_).normal_(0.0, deviation, generator_);
  if (format == at::MemoryFormat::Contiguous) return add(name, std::move(drawn));
  return add(name, at::empty(sizes, options_.memory_format(format)).copy_(drawn));
}

}  // namespace stowage::executor
