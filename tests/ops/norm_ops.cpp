// Normalisations.
#include <ATen/Functions.h>

#include <tuple>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

// Weight and bias of the channels.
std::vector<Operand> batch_operands() {
  return {grid(), of({3}), of({3})};
}

}  // namespace

std::vector<Op> norm_ops() {
  return {
      op("nn.functional.batch_norm", batch_operands(),
         [](const T& a, const T& b, const T& c) {
           return at::batch_norm(a, b, c, {}, {}, true, 0.1, 1e-5, false);
         })
          .not_as("scalar"),
      op("native_batch_norm", batch_operands(),
         [](const T& a, const T& b, const T& c) {
           const T mean = at::zeros({3}, a.options());
           const T variance = at::ones({3}, a.options());
           return std::get<0>(at::native_batch_norm(a, b, c, mean, variance, false, 0.1, 1e-5));
         })
          .not_as("scalar")
          .crashes_as("empty"),
      op("_native_batch_norm_legit", batch_operands(),
         [](const T& a, const T& b, const T& c) {
           return std::get<0>(at::_native_batch_norm_legit(a, b, c, true, 0.1, 1e-5));
         })
          .not_as("empty scalar"),
      op("_batch_norm_with_update", batch_operands(),
         [](const T& a, const T& b, const T& c) {
           T mean = at::zeros({3}, a.options());
           T variance = at::ones({3}, a.options());
           return std::get<0>(at::_batch_norm_with_update(a, b, c, mean, variance, 0.1, 1e-5));
         })
          .not_as("empty scalar"),
      op("nn.functional.group_norm", {of({2, 6, 4, 5}), of({6}), of({6})},
         [](const T& a, const T& b, const T& c) { return at::group_norm(a, 3, b, c); })
          .not_as("scalar"),
      op("nn.functional.instance_norm", batch_operands(),
         [](const T& a, const T& b, const T& c) {
           return at::instance_norm(a, b, c, {}, {}, true, 0.1, 1e-5, false);
         })
          .not_as("empty scalar"),
      op("nn.functional.layer_norm", {grid(), of({4, 5}), of({4, 5})},
         [](const T& a, const T& b, const T& c) {
           return at::layer_norm(a, {4, 5}, b, c);
         })
          .not_as("scalar"),
      op("native_layer_norm", {grid(), of({5}), of({5})},
         [](const T& a, const T& b, const T& c) {
           return std::get<0>(at::native_layer_norm(a, {5}, b, c, 1e-5));
         })
          .not_as("scalar"),
      op("nn.functional.rms_norm", {grid(), of({5})},
         [](const T& a, const T& b) { return at::rms_norm(a, {5}, b, 1e-5); })
          .not_as("scalar"),
  };
}

}  // namespace stowage::ops
