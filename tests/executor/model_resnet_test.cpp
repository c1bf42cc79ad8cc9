#include "executor/models/resnet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

constexpr const char* kResnetTiny = "resnet50:blocks=2-1-1-1,width=4,image=33,classes=7,batch=6";

std::map<std::string, at::Tensor> by_name(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, at::Tensor> all;
  for (const NamedTensor& each : tensors) all[each.name] = each.tensor;
  return all;
}

ResNetConfig config_of(const std::string& text) {
  const auto spec = parse_model_spec(text);
  EXPECT_TRUE(spec.ok());
  const ModelInfo info = resnet50_info();
  OptionReader reader(info, *spec);
  ResNetConfig config = read_resnet(reader, spec->batch);
  EXPECT_FALSE(reader.error());
  return config;
}

TEST(ModelResnet, ParametersAreThoseOfTorchvision) {
  EXPECT_EQ(ResNetConfig{}.parameter_count(), 25'557'032);
  EXPECT_EQ(config_of("resnet50:blocks=3-4-23-3").parameter_count(), 44'549'160) << "resnet101";
  EXPECT_EQ(config_of("resnet50:blocks=3-8-36-3").parameter_count(), 60'192'808) << "resnet152";
  const auto model = make_test_model(kResnetTiny);
  std::int64_t count = 0;
  for (const NamedTensor& each : model->parameters()) count += each.tensor.numel();
  EXPECT_EQ(count, config_of(kResnetTiny).parameter_count());
}

TEST(ModelResnet, NamesAreThoseOfTorchvision) {
  const auto model = make_test_model(kResnetTiny);
  std::vector<std::string> names;
  for (const NamedTensor& each : model->parameters()) names.push_back(each.name);
  // Stem 3, five blocks of 9, a shortcut of 3 in each stage, classifier 2.
  ASSERT_EQ(names.size(), 3U + 5 * 9 + 4 * 3 + 2);
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 4),
            (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias",
                                      "layer1.0.conv1.weight"}));
  EXPECT_EQ(names[12], "layer1.0.downsample.0.weight");
  EXPECT_EQ(names[15], "layer1.1.conv1.weight") << "no shortcut in the second block";
  EXPECT_EQ(names.back(), "fc.bias");
  const auto parameters = by_name(model->parameters());
  EXPECT_EQ(parameters.at("layer3.0.conv2.weight").sizes(),
            (std::vector<std::int64_t>{16, 16, 3, 3}));
  const auto buffers = model->buffers();
  ASSERT_EQ(buffers.size(), 3U * (1 + 5 * 3 + 4));
  EXPECT_EQ(buffers[0].name, "bn1.running_mean");
  EXPECT_EQ(buffers[1].name, "bn1.running_var");
  EXPECT_EQ(buffers[2].name, "bn1.num_batches_tracked");
  ASSERT_EQ(model->inputs().size(), 2U);
  EXPECT_EQ(model->inputs()[0].tensor.sizes(), (std::vector<std::int64_t>{6, 3, 33, 33}));
  EXPECT_LT(model->inputs()[1].tensor.max().item<std::int64_t>(), 7);
}

// The same network in double precision; a convolution is a product with the image's patches.
class ResnetReference {
 public:
  explicit ResnetReference(const std::vector<NamedTensor>& parameters) {
    for (const NamedTensor& each : parameters) {
      p_[each.name] = each.tensor.detach().to(at::kDouble).contiguous().requires_grad_(true);
    }
  }

  at::Tensor loss(const at::Tensor& images, const at::Tensor& targets) const {
    at::Tensor x = unit("conv1", "bn1", images.to(at::kDouble).contiguous(), 2).relu();
    // Nothing is below zero here, so padding with zeros is as good as with -inf.
    const std::int64_t edge = (x.size(3) + 1) / 2;
    x = at::im2col(x, {3, 3}, {1, 1}, {1, 1}, {2, 2})
            .view({x.size(0), x.size(1), 9, edge, edge})
            .amax(2);
    for (int stage = 1; stage <= 4; ++stage) {
      for (int n = 0; p_.count(path(stage, n) + "conv1.weight") != 0; ++n) {
        x = block(path(stage, n), x, stage > 1 && n == 0 ? 2 : 1);
      }
    }
    x = at::matmul(x.mean({2, 3}), p_.at("fc.weight").t()) + p_.at("fc.bias");
    return (at::log(at::exp(x).sum(1)) - x.gather(1, targets.unsqueeze(1)).squeeze(1)).mean();
  }

  at::Tensor gradient(const std::string& name) const { return p_.at(name).grad(); }

 private:
  static std::string path(int stage, int n) {
    return "layer" + std::to_string(stage) + "." + std::to_string(n) + ".";
  }
  at::Tensor unit(const std::string& convolution, const std::string& norm, const at::Tensor& x,
                  std::int64_t stride) const {
    const at::Tensor weight = p_.at(convolution + ".weight");
    const std::int64_t k = weight.size(2);
    const std::int64_t edge = (x.size(3) + stride - 1) / stride;
    const at::Tensor patches = at::im2col(x, {k, k}, {1, 1}, {k / 2, k / 2}, {stride, stride});
    const at::Tensor y = at::matmul(weight.view({weight.size(0), -1}), patches)
                             .view({x.size(0), weight.size(0), edge, edge});
    const at::Tensor centred = y - y.mean({0, 2, 3}, true);
    const at::Tensor variance = (centred * centred).mean({0, 2, 3}, true);
    return centred / at::sqrt(variance + 1e-5) * p_.at(norm + ".weight").view({1, -1, 1, 1}) +
           p_.at(norm + ".bias").view({1, -1, 1, 1});
  }
  at::Tensor block(const std::string& path, const at::Tensor& x, std::int64_t stride) const {
    at::Tensor y = unit(path + "conv1", path + "bn1", x, 1).relu();
    y = unit(path + "conv2", path + "bn2", y, stride).relu();
    y = unit(path + "conv3", path + "bn3", y, 1);
    const bool fits = p_.count(path + "downsample.0.weight") == 0;
    return (y + (fits ? x : unit(path + "downsample.0", path + "downsample.1", x, stride))).relu();
  }

  std::map<std::string, at::Tensor> p_;
};

void expect_near(const at::Tensor& value, const at::Tensor& expected, double tolerance,
                 const std::string& name) {
  // Against the largest: gradients of different parameters differ by orders of magnitude.
  const double scale = expected.abs().max().item<double>();
  EXPECT_TRUE(
      at::allclose(value.to(at::kDouble), expected.to(at::kDouble), tolerance, tolerance * scale))
      << name << " is off by "
      << (value.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>() / scale;
}

void expect_resnet_gradients(const std::string& options) {
  TrainingStep step = make_test_step(kResnetTiny + options);
  // In this batch no activation lies so near to zero that float and double decide relu differently.
  const double value = step.run(1);
  const ResnetReference reference(step.parameters());
  const auto inputs = step.model().inputs();
  const at::Tensor expected = reference.loss(inputs[0].tensor, inputs[1].tensor);
  expected.backward();
  EXPECT_NEAR(value, expected.item<double>(), 1e-5 * value);
  ASSERT_EQ(step.gradients().size(), step.parameters().size());
  for (const NamedTensor& gradient : step.gradients()) {
    expect_near(gradient.tensor, reference.gradient(gradient.name), 1e-3, gradient.name);
  }
}

TEST(ModelResnet, GradientsAreThoseOfElementaryOperations) {
  expect_resnet_gradients("");
}
TEST(ModelResnet, InChannelsLastToo) {
  expect_resnet_gradients(",channels_last=true");
}

TEST(ModelResnet, ChannelsLastIsTheSameNetworkInAnotherMemoryFormat) {
  const auto plain = make_test_model(kResnetTiny);
  const auto last = make_test_model(std::string(kResnetTiny) + ",channels_last=true");
  const auto other = by_name(plain->parameters());
  for (const NamedTensor& each : last->parameters()) {
    EXPECT_TRUE(each.tensor.equal(other.at(each.name))) << each.name;
    if (each.tensor.dim() != 4) continue;
    const auto sizes = each.tensor.sizes();
    EXPECT_EQ(each.tensor.strides(), (std::vector<std::int64_t>{sizes[1] * sizes[2] * sizes[3], 1,
                                                                sizes[3] * sizes[1], sizes[1]}))
        << each.name;
  }
  EXPECT_TRUE(last->inputs()[0].tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(plain->inputs()[0].tensor.is_contiguous());
}

// Momentum 0.1 from mean 0 and variance 1; the variance of the running one is unbiased.
TEST(ModelResnet, RunningStatisticsAreUpdatedOncePerStepAndDecideNothing) {
  TrainingStep step = make_test_step(kResnetTiny);
  const double first = step.run(3);
  const auto parameters = by_name(step.parameters());
  auto buffers = by_name(step.model().buffers());
  const at::Tensor y =
      at::conv2d(step.model().inputs()[0].tensor, parameters.at("conv1.weight"), {}, 2, 3);
  expect_near(buffers.at("bn1.running_mean"), 0.1 * y.mean({0, 2, 3}), 1e-4, "mean");
  expect_near(buffers.at("bn1.running_var"),
              0.9 + 0.1 * y.var(at::IntArrayRef{0, 2, 3}, /*unbiased=*/true), 1e-4, "variance");
  EXPECT_EQ(step.run(3), first) << "the same batch, other running statistics";
  for (const auto& [name, tensor] : buffers) {
    if (!name.ends_with("num_batches_tracked")) continue;
    EXPECT_EQ(tensor.item<std::int64_t>(), 2) << name;
  }
}

TEST(ModelResnet, LayersNestAndHoldEveryConvolution) {
  TrainingStep step = make_test_step(kResnetTiny);
  step.prepare(0);
  LayerLog log(/*bytes=*/0);
  step.step();
  const std::vector<std::string> block = {"<layer1.0",       "<layer1.0.conv1", ">layer1.0.conv1",
                                          "<layer1.0.conv2", ">layer1.0.conv2", "<layer1.0.conv3",
                                          ">layer1.0.conv3", ">layer1.0"};
  ASSERT_GT(log.rows.size(), 2 + block.size());
  EXPECT_EQ(log.rows[0], "<stem");
  EXPECT_EQ(log.rows[1], ">stem");
  EXPECT_EQ(std::vector<std::string>(log.rows.begin() + 2, log.rows.begin() + 10), block);
  // Each layer begins and ends once in each direction, but for the stem, whose input needs no
  // gradient: stem, five blocks of four, head, loss.
  EXPECT_EQ(log.rows.size(), 4U * (1 + 5 * 4 + 2) - 1);
  EXPECT_EQ(log.rows.back(), "[stem");
}

TEST(ModelResnet, Bf16RunsNearFp32) {
  const std::string text = "resnet50:blocks=1-1-1-1,width=8,image=64,batch=8";
  // Close to a uniform guess, log(1000), as any freshly made model. Batch norms over few values
  // take differences of what is nearly equal: gradients keep their direction and not much more (one
  // that is missing is 1 apart, another one's 1.4).
  EXPECT_NEAR(expect_bf16_near_fp32(text, 0.03, 0.75), std::log(1000.0), 0.5);
  TrainingStep narrow = make_test_step(text + ",dtype=bf16");
  EXPECT_EQ(narrow.model().buffers()[0].tensor.scalar_type(), at::kBFloat16);
}

TEST(ModelResnet, MeanOfTheLogitsNeedsNoTargets) {
  TrainingStep step = make_test_step(std::string(kResnetTiny) + ",loss=mean");
  EXPECT_EQ(step.model().inputs().size(), 1U);
  EXPECT_TRUE(std::isfinite(step.run(0)));
  int compared = 0;
  for (const NamedTensor& each : step.gradients()) {
    if (each.name != "fc.bias") continue;
    ++compared;
    EXPECT_TRUE(at::allclose(each.tensor, at::full({7}, 1.0 / 7, each.tensor.options())));
  }
  EXPECT_EQ(compared, 1);
}

}  // namespace
}  // namespace stowage::executor
