// Any torch::nn::Sequential as a model: layers by name, the same numbers as without Stowage.
#include "executor/models/sequential.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

using torch::nn::Linear;
using torch::nn::Sequential;

Sequential make_network() {
  at::manual_seed(7);
  return Sequential(Linear(8, 16), torch::nn::Tanh(), Linear(16, 4));
}

SequentialTask make_task() {
  SequentialTask task;
  const at::Tensor x = at::empty({32, 8});
  const at::Tensor y = at::empty({32, 4});
  task.inputs = {{"x", x}, {"y", y}};
  task.load_batch = [x, y](std::int64_t seed) {
    at::manual_seed(static_cast<std::uint64_t>(seed));
    x.normal_();
    y.normal_();
  };
  task.loss = [y](const at::Tensor& output) { return at::mse_loss(output, y); };
  return task;
}

TEST(Sequential, IsAModelWithALayerForEachModule) {
  test_device();
  TrainingStep step(test_device(), sequential_model(make_network(), make_task()), {.seed = 3});
  std::vector<std::string> rows;
  {
    LayerLog log(/*bytes=*/0);
    step.run(0);
    rows = log.rows;
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"<0", ">0", "<1", ">1", "<2", ">2", "<loss", ">loss",
                                            "[loss", "]loss", "[2", "]2", "[1", "]1", "[0"}));
  std::vector<std::string> names;
  for (const NamedTensor& each : step.parameters()) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
}

TEST(Sequential, TheNumbersAreThoseOfThePlainNetwork) {
  test_device();
  Sequential network = make_network();
  const SequentialTask task = make_task();
  TrainingStep step(test_device(), sequential_model(network, task), {.seed = 3});
  const double loss = step.run(0);
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& each : step.gradients()) gradients.push_back(each.tensor.clone());

  network->zero_grad();
  task.load_batch(3);
  const at::Tensor plain = task.loss(network->forward(task.inputs.front().tensor));
  plain.backward();
  EXPECT_EQ(loss, static_cast<double>(*plain.const_data_ptr<float>()));
  const auto parameters = network->parameters();
  ASSERT_EQ(parameters.size(), gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(at::equal(parameters[i].grad(), gradients[i])) << i;
  }
}

TEST(Sequential, ATaskThatIsNotWholeIsRefused) {
  test_device();
  EXPECT_THROW(sequential_model(make_network(), {}), c10::Error);
  SequentialTask task = make_task();
  task.loss = nullptr;
  EXPECT_THROW(sequential_model(make_network(), task), c10::Error);
}

}  // namespace
}  // namespace stowage::executor
