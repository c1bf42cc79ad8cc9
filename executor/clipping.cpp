#include "executor/clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

namespace stowage::executor {

namespace {
constexpr double kAboveZero = 1e-6;  // PyTorch's
}  // namespace

void clip_gradients(const std::vector<NamedTensor>& parameters, double most) {
  const at::NoGradGuard no_graph;
  std::vector<at::Tensor> norms;
  for (const NamedTensor& parameter : parameters) {
    if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined()) {
      norms.push_back(at::linalg_vector_norm(gradient, 2));
    }
  }
  if (norms.empty()) return;
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms), 2);
  norms.clear();
  const at::Tensor factor = at::clamp_max(most / (norm + kAboveZero), 1);
  for (const NamedTensor& parameter : parameters) {
    if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined()) {
      gradient.mul_(factor);
    }
  }
}

}  // namespace stowage::executor
