#include "executor/models/mlp.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

TEST(ModelMlp, ParametersByHand) {
  const auto model = make_test_model("mlp:layers=3,width=8,hidden=20,batch=5");
  // Per layer 8*20 + 20 + 20*8 + 8 = 348.
  std::int64_t count = 0;
  for (const NamedTensor& each : model->parameters()) {
    EXPECT_TRUE(each.tensor.is_leaf() && each.tensor.requires_grad()) << each.name;
    count += each.tensor.numel();
  }
  EXPECT_EQ(count, 3 * 348);
  EXPECT_EQ(model->parameters().size(), 12u);
  EXPECT_EQ(model->parameters()[4].name, "layers.1.up.weight");
  ASSERT_EQ(model->inputs().size(), 2u);
  EXPECT_EQ(model->inputs()[0].tensor.sizes(), (std::vector<std::int64_t>{5, 8}));
  EXPECT_TRUE(model->buffers().empty());
}

// The same network in double precision from elementary operations only.
at::Tensor reference_loss(const std::map<std::string, at::Tensor>& p, at::Tensor x,
                          const at::Tensor& targets, std::int64_t layers, bool cross_entropy) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    x = at::matmul(x, p.at(path + ".up.weight").t()) + p.at(path + ".up.bias");
    x = x * 0.5 * (1 + at::erf(x / std::numbers::sqrt2));
    x = at::matmul(x, p.at(path + ".down.weight").t()) + p.at(path + ".down.bias");
  }
  if (!targets.defined()) return x.mean();
  if (!cross_entropy) return ((x - targets) * (x - targets)).mean();
  const at::Tensor log_sum = at::log(at::exp(x).sum(1));
  return (log_sum - x.gather(1, targets.unsqueeze(1)).squeeze(1)).mean();
}

void expect_mlp_gradients(const std::string& loss) {
  TrainingStep step = make_test_step("mlp:layers=2,width=8,hidden=20,batch=5,loss=" + loss);
  const double value = step.run(0);
  std::map<std::string, at::Tensor> doubles;
  for (const NamedTensor& each : step.parameters()) {
    doubles[each.name] = each.tensor.detach().to(at::kDouble).requires_grad_(true);
  }
  const auto inputs = step.model().inputs();
  const at::Tensor targets = loss == "mean"            ? at::Tensor()
                             : loss == "cross-entropy" ? inputs[1].tensor
                                                       : inputs[1].tensor.to(at::kDouble);
  const at::Tensor expected = reference_loss(doubles, inputs[0].tensor.to(at::kDouble), targets, 2,
                                             loss == "cross-entropy");
  expected.backward();
  EXPECT_NEAR(value, expected.item<double>(), 1e-6 * std::abs(value));
  ASSERT_EQ(step.gradients().size(), doubles.size());
  for (const NamedTensor& gradient : step.gradients()) {
    EXPECT_TRUE(
        at::allclose(gradient.tensor.to(at::kDouble), doubles.at(gradient.name).grad(), 1e-4, 1e-8))
        << gradient.name;
  }
}

TEST(ModelMlp, GradientsAreThoseOfElementaryOperations) {
  expect_mlp_gradients("mse");
}

TEST(ModelMlp, CrossEntropyGradientsToo) {
  expect_mlp_gradients("cross-entropy");
}

TEST(ModelMlp, MeanHasNoTargets) {
  expect_mlp_gradients("mean");
  TrainingStep step = make_test_step("mlp:layers=1,width=8,loss=mean");
  EXPECT_EQ(step.model().inputs().size(), 1U);
}

}  // namespace
}  // namespace stowage::executor
