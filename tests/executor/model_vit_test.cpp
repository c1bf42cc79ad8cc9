#include "executor/models/vit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

constexpr const char* kVitTiny =
    "vit:layers=2,width=12,heads=3,mlp=20,patch=4,image=12,classes=7,batch=3";

TEST(ModelVit, ParametersAreThoseOfTorchvision) {
  EXPECT_EQ(VitConfig{}.parameter_count(), 86'567'656);
  const auto model = make_test_model(kVitTiny);
  std::int64_t count = 0;
  for (const NamedTensor& each : model->parameters()) count += each.tensor.numel();
  // Class token 12, patches 12*48 + 12, positions 10*12; a block two norms 2*24, qkv 36*12 + 36,
  // projection 12*12 + 12, perceptron 2*12*20 + 20 + 12; last norm 24, head 7*12 + 7.
  EXPECT_EQ(count, 12 + 588 + 120 + 2 * (48 + 468 + 156 + 512) + 24 + 91);
  EXPECT_EQ(model->parameters().size(), 4U + 2 * 12 + 4);
  EXPECT_EQ(model->parameters()[0].name, "embed.class_token");
  EXPECT_EQ(model->parameters()[4].name, "layers.0.attn.norm.weight");
  EXPECT_TRUE(model->buffers().empty());
  ASSERT_EQ(model->inputs().size(), 2U);
  EXPECT_EQ(model->inputs()[0].tensor.sizes(), (std::vector<std::int64_t>{3, 3, 12, 12}));
}

// The same network in double precision from elementary operations only.
class VitReference {
 public:
  explicit VitReference(const std::vector<NamedTensor>& parameters) {
    for (const NamedTensor& each : parameters) {
      p_[each.name] = each.tensor.detach().to(at::kDouble).requires_grad_(true);
    }
  }

  at::Tensor loss(const at::Tensor& images, const at::Tensor& targets) const {
    constexpr std::int64_t kPatch = 4;
    std::vector<at::Tensor> rows{p_.at("embed.class_token").expand({images.size(0), 1, 12})};
    const at::Tensor weight = p_.at("embed.patches.weight").view({12, -1});
    for (std::int64_t y = 0; y < images.size(2); y += kPatch) {
      for (std::int64_t x = 0; x < images.size(3); x += kPatch) {
        const at::Tensor patch = images.to(at::kDouble)
                                     .narrow(2, y, kPatch)
                                     .narrow(3, x, kPatch)
                                     .reshape({images.size(0), -1});
        rows.push_back((at::matmul(patch, weight.t()) + p_.at("embed.patches.bias")).unsqueeze(1));
      }
    }
    at::Tensor x = at::cat(rows, 1) + p_.at("embed.positions");
    for (int i = 0; p_.count("layers." + std::to_string(i) + ".attn.norm.weight") != 0; ++i) {
      const std::string path = "layers." + std::to_string(i);
      x = x + attention(path + ".attn", norm(path + ".attn.norm", x));
      const at::Tensor up = linear(path + ".mlp.up", norm(path + ".mlp.norm", x));
      x = x + linear(path + ".mlp.down", up * 0.5 * (1 + at::erf(up / std::numbers::sqrt2)));
    }
    x = linear("head", norm("head.norm", x).select(1, 0));
    return (at::log(at::exp(x).sum(1)) - x.gather(1, targets.unsqueeze(1)).squeeze(1)).mean();
  }

  at::Tensor gradient(const std::string& name) const { return p_.at(name).grad(); }

 private:
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor variance = (centred * centred).mean(-1, true);
    return centred / at::sqrt(variance + 1e-6) * p_.at(name + ".weight") + p_.at(name + ".bias");
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::matmul(x, p_.at(name + ".weight").t()) + p_.at(name + ".bias");
  }
  // Head by head, every token sees every other.
  at::Tensor attention(const std::string& path, const at::Tensor& x) const {
    constexpr std::int64_t kHead = 4;
    const at::Tensor qkv = linear(path + ".qkv", x);
    std::vector<at::Tensor> heads;
    for (std::int64_t h = 0; h < 12; h += kHead) {
      const at::Tensor scores =
          at::matmul(qkv.narrow(2, h, kHead), qkv.narrow(2, 12 + h, kHead).transpose(1, 2)) / 2;
      const at::Tensor weights = at::exp(scores) / at::exp(scores).sum(2, true);
      heads.push_back(at::matmul(weights, qkv.narrow(2, 24 + h, kHead)));
    }
    return linear(path + ".projection", at::cat(heads, 2));
  }

  std::map<std::string, at::Tensor> p_;
};

void expect_vit_gradients(const std::string& options) {
  TrainingStep step = make_test_step(kVitTiny + options);
  const double value = step.run(0);
  const VitReference reference(step.parameters());
  const auto inputs = step.model().inputs();
  const at::Tensor expected = reference.loss(inputs[0].tensor, inputs[1].tensor);
  expected.backward();
  EXPECT_NEAR(value, expected.item<double>(), 1e-6 * value);
  ASSERT_EQ(step.gradients().size(), step.parameters().size());
  for (const NamedTensor& gradient : step.gradients()) {
    const at::Tensor wanted = reference.gradient(gradient.name);
    const double scale = wanted.abs().max().item<double>();
    EXPECT_TRUE(at::allclose(gradient.tensor.to(at::kDouble), wanted, 1e-3, 2e-5 * scale + 1e-9))
        << options << " " << gradient.name;
  }
}

TEST(ModelVit, GradientsAreThoseOfElementaryOperations) {
  expect_vit_gradients("");
}
TEST(ModelVit, WithMathAttentionToo) {
  expect_vit_gradients(",attention=math");
}

TEST(ModelVit, Bf16RunsNearFp32) {
  const std::string text = "vit:layers=2,width=64,patch=8,image=32,classes=100,batch=4";
  EXPECT_NEAR(expect_bf16_near_fp32(text, 0.03, 0.05), std::log(100.0), 0.3);
}

// Every layer begins and ends once in forward and in backward, and the fused kernel keeps no
// attention matrix: 3 samples, 3 heads, 10 x 10 tokens, 4 bytes.
TEST(ModelVit, LayersNestAndEfficientAttentionKeepsNoMatrix) {
  for (const bool efficient : {true, false}) {
    TrainingStep step = make_test_step(
        std::string("vit:layers=1,width=12,heads=3,mlp=20,patch=4,image=12,classes=7,batch=3,") +
        (efficient ? "attention=efficient" : "attention=math"));
    step.prepare(0);
    LayerLog log(3 * 3 * 10 * 10 * 4);
    step.step();
    EXPECT_EQ(log.rows, (std::vector<std::string>{
                            "<embed",         ">embed",        "<layers.0",     "<layers.0.attn",
                            ">layers.0.attn", "<layers.0.mlp", ">layers.0.mlp", ">layers.0",
                            "<head",          ">head",         "<loss",         ">loss",
                            "[loss",          "]loss",         "[head",         "]head",
                            "[layers.0",      "[layers.0.mlp", "]layers.0.mlp", "[layers.0.attn",
                            "]layers.0.attn", "]layers.0",     "[embed"}));
    EXPECT_EQ(log.live.at(">layers.0.attn"), efficient ? 0 : 1);
  }
}

}  // namespace
}  // namespace stowage::executor
