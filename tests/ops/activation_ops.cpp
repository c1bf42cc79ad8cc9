// Activations and softmaxes.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

std::vector<Op> activation_ops() {
  return {
      op("nn.functional.celu", {grid()}, [](const T& a) { return at::celu(a, 0.7); }),
      op("nn.functional.elu", {grid()}, [](const T& a) { return at::elu(a, 0.7); }),
      op("nn.functional.gelu", {grid()}, [](const T& a) { return at::gelu(a, "tanh"); }),
      op("nn.functional.glu", {of({2, 6, 4, 5})}, [](const T& a) { return at::glu(a, 1); })
          .not_as("scalar"),
      op("nn.functional.hardshrink", {grid()}, [](const T& a) { return at::hardshrink(a); }),
      op("nn.functional.hardsigmoid", {grid()}, at::hardsigmoid),
      op("nn.functional.hardswish", {grid()}, at::hardswish),
      op("nn.functional.hardtanh", {grid()}, [](const T& a) { return at::hardtanh(a); }),
      op("nn.functional.leaky_relu", {grid()}, [](const T& a) { return at::leaky_relu(a, 0.2); }),
      op("nn.functional.logsigmoid", {grid()}, at::log_sigmoid),
      op("nn.functional.mish", {grid()}, at::mish),
      op("nn.functional.prelu", {grid(), of({3})}, at::prelu),
      op("nn.functional.relu", {grid()}, at::relu),
      op("nn.functional.relu6", {grid()}, at::relu6),
      op("nn.functional.selu", {grid()}, at::selu),
      op("nn.functional.silu", {grid()}, at::silu),
      op("nn.functional.softplus", {grid()}, [](const T& a) { return at::softplus(a, 2, 3); }),
      op("nn.functional.softshrink", {grid()}, [](const T& a) { return at::softshrink(a); }),
      op("nn.functional.threshold", {grid()}, [](const T& a) { return at::threshold(a, 0.3, 1); }),
      op("softmax", {grid()}, [](const T& a) { return at::softmax(a, 1); }).not_as("scalar"),
      op("softmax.with_dtype", {grid()}, [](const T& a) { return at::softmax(a, 1, at::kDouble); })
          .not_as("scalar"),
      op("log_softmax", {grid()}, [](const T& a) { return at::log_softmax(a, 1); })
          .not_as("scalar"),
      op("log_softmax.with_dtype", {grid()},
         [](const T& a) { return at::log_softmax(a, 1, at::kDouble); })
          .not_as("scalar"),
      op("torch.ops.aten._safe_softmax.default", {grid()},
         [](const T& a) { return at::_safe_softmax(a, 1); })
          .not_as("scalar"),
      op("_softmax_backward_data", {grid(), grid(kUnit)},
         [](const T& a, const T& b) {
           return at::_softmax_backward_data(a, b, 1, a.scalar_type());
         })
          .not_as("scalar"),
      op("nn.functional.scaled_dot_product_attention",
         {of({2, 3, 6, 8}), of({2, 3, 7, 8}), of({2, 3, 7, 8})},
         [](const T& a, const T& b, const T& c) {
           return at::scaled_dot_product_attention(a, b, c, {}, 0.0, true);
         })
          .not_as("scalar"),
  };
}

}  // namespace stowage::ops
