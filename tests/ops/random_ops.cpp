// Ops that draw random numbers: what they drew is in what they save.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

std::vector<Op> random_ops() {
  return {
      op("bernoulli", {grid(kUnit)}, [](const T& a) { return at::bernoulli(a); }).saves_nothing(),
      op("normal", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::normal(a, b); })
          .saves_nothing(),
      op("normal.number_mean", {grid(kPositive)}, [](const T& a) { return at::normal(0.5, a); })
          .saves_nothing(),
      op("nn.functional.dropout", {grid()}, [](const T& a) { return at::dropout(a, 0.4, true); }),
      op("nn.functional.dropout2d", {grid()},
         [](const T& a) { return at::feature_dropout(a, 0.4, true); })
          .not_as("scalar"),
      op("nn.functional.dropout3d", {of({2, 3, 2, 4, 3})},
         [](const T& a) { return at::feature_dropout(a, 0.4, true); })
          .not_as("scalar"),
      op("nn.functional.alpha_dropout", {grid()},
         [](const T& a) { return at::alpha_dropout(a, 0.4, true); }),
      op("nn.functional.feature_alpha_dropout.with_train", {grid()},
         [](const T& a) { return at::feature_alpha_dropout(a, 0.4, true); })
          .not_as("scalar"),
      op("nn.functional.feature_alpha_dropout.without_train", {grid()},
         [](const T& a) { return at::feature_alpha_dropout(a, 0.4, false); })
          .saves_nothing(),
      op("native_dropout_backward", {grid()},
         [](const T& a) {
           const T drawn = at::rand(a.sizes(), a.options().dtype(at::kFloat)) > 0.4;
           return at::native_dropout_backward(a, drawn, 2);
         }),
      op("nn.functional.rrelu", {grid()}, [](const T& a) { return at::rrelu(a, 0.1, 0.4, true); }),
  };
}

}  // namespace stowage::ops
