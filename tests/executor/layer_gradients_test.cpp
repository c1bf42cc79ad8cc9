// Gradient x activation of layers in a step without a plan (those with one:
// tests/cli_torch/attribution_test.cpp).
#include "executor/layer_gradients.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/attributed_forward.h"
#include "executor/device/cpu_device.h"
#include "executor/held.h"
#include "executor/layer.h"

namespace stowage::executor {
namespace {

using Tensors = std::vector<at::Tensor>;

class Attributions : public ::testing::Test {
 protected:
  [[nodiscard]] static std::vector<AttributedLayers> layers(const std::string& text) {
    return parse_attribution(text).value();
  }

  // layers.0 returns two tensors, layers.1 their product; the sum of it is the score.
  [[nodiscard]] BackwardRoot forward() const {
    const LayerFn two = [](const Tensors& in) -> Tensors { return {in[0] * 2, in[0] + 1}; };
    const TensorFn product = [](const Tensors& in) { return in[0] * in[1]; };
    const Tensors both = layer("layers.0", two, {x_});
    return {layer("layers.1", product, both).sum(), {}};
  }

  [[nodiscard]] std::vector<NamedTensor> attributed(const std::string& text) {
    AttributedForward attribution(device_, layers(text));
    const BackwardRoot root = attribution.run([this] { return forward(); });
    root.tensor.backward();
    attribution.gradients().end_backward();
    return copies(attribution.gradients().results());
  }

  static std::vector<NamedTensor> copies(std::vector<NamedTensor> results) {
    for (NamedTensor& each : results) each.tensor = each.tensor.clone();
    return results;
  }

  Device& device_ = *cpu_device().value();
  at::Tensor x_ = at::arange(1, 4, at::kFloat);
};

// score = sum of a * b with a = 2 x and b = x + 1: the gradient of a is b, and that of b is a.
TEST_F(Attributions, OfSeveralTensorsAreEachTimesItsGradient) {
  const auto results = attributed("layers.0");
  ASSERT_EQ(results.size(), 2U);
  const at::Tensor product = (x_ * 2) * (x_ + 1);
  EXPECT_EQ(results[0].name, "layers.0");
  EXPECT_EQ(results[1].name, "layers.0#1");
  EXPECT_TRUE(at::equal(results[0].tensor, product));
  EXPECT_TRUE(at::equal(results[1].tensor, product));
}

TEST_F(Attributions, OfWhatALayerIsGivenAndReturns) {
  const auto results = attributed("inputs:layers.0+layers.*");
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].name, "layers.0:input");
  // d(2 x (x + 1)) / dx = 4 x + 2
  EXPECT_TRUE(at::equal(results[0].tensor, (x_ * 4 + 2) * x_));
  EXPECT_EQ(results[3].name, "layers.1");
  EXPECT_TRUE(at::equal(results[3].tensor, (x_ * 2) * (x_ + 1)));
  EXPECT_FALSE(x_.requires_grad());
}

TEST_F(Attributions, WithAFactorAreThatTimesTheGradient) {
  LayerGradients gradients(device_);
  gradients.begin();
  const at::Tensor started = gradients.start(x_);
  const at::Tensor y = gradients.attribute("y", started * 3, at::full({3}, 10, at::kFloat));
  const at::Tensor score = (y * y).sum();
  gradients.end_forward();
  score.backward();
  gradients.end_backward();
  EXPECT_TRUE(at::equal(gradients.results().at(0).tensor, x_ * 60));
  EXPECT_FALSE(started.grad().defined());  // nothing keeps a gradient
}

TEST_F(Attributions, WithoutAGradientAreAnErrorAndTheNextStepIsClean) {
  LayerGradients gradients(device_);
  gradients.begin();
  const at::Tensor unused = gradients.attribute("unused", x_ + 1);
  const at::Tensor used = gradients.attribute("used", x_ + 2);
  gradients.end_forward();
  used.sum().backward();
  try {
    gradients.end_backward();
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("no gradient came to 'unused'"), std::string::npos);
  }
  gradients.begin();
  const at::Tensor again = gradients.attribute("again", x_ + 1);
  gradients.end_forward();
  again.sum().backward();
  gradients.end_backward();
  ASSERT_EQ(gradients.results().size(), 1U);
  EXPECT_TRUE(at::equal(gradients.results()[0].tensor, x_ + 1));
  EXPECT_EQ(gradients.attribute("outside", x_).unsafeGetTensorImpl(), x_.unsafeGetTensorImpl());
}

TEST_F(Attributions, OfAStepWithoutAnyAreNotThoseOfTheStepBefore) {
  LayerGradients gradients(device_);
  gradients.begin();
  const at::Tensor y = gradients.attribute("y", x_ + 1);
  gradients.end_forward();
  y.sum().backward();
  gradients.end_backward();
  ASSERT_EQ(gradients.results().size(), 1U);
  gradients.begin();
  gradients.end_forward();
  gradients.end_backward();
  EXPECT_TRUE(gradients.results().empty());
}

TEST_F(Attributions, OfNoLayerNameTheNearest) {
  AttributedForward attribution(device_, layers("layer.1"));
  try {
    static_cast<void>(attribution.run([this] { return forward(); }));
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("no layer of the model matches 'layer.1'"), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean 'layers.1'?"), std::string::npos) << text;
  }
}

TEST(Held, OutsideOfAStepStaysAndIsGuarded) {
  const at::Tensor tensor = at::ones({3});
  const Held held = hold(tensor);
  EXPECT_EQ(held.get().const_data_ptr(), tensor.const_data_ptr());
  tensor.add_(1);
  EXPECT_THROW(static_cast<void>(held.get()), c10::Error);
}

}  // namespace
}  // namespace stowage::executor
