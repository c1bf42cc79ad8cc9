#include "executor/models/gpt2.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

constexpr const char* kGpt2Tiny = "gpt2:layers=2,width=12,heads=3,seq=7,vocab=11,batch=2";

std::int64_t count_parameters(const std::string& text) {
  std::int64_t count = 0;
  for (const NamedTensor& each : make_test_model(text)->parameters()) count += each.tensor.numel();
  return count;
}

TEST(ModelGpt2, ParametersByHand) {
  // Block of width 12: two norms 2*24, qkv 36*12+36, projection 12*12+12, up 48*12+48,
  // down 12*48+12: 48 + 468 + 156 + 624 + 588 = 1884. Embeddings 11*12 + 7*12 = 216; last norm 24.
  EXPECT_EQ(count_parameters(kGpt2Tiny), 216 + 2 * 1884 + 24);
  EXPECT_EQ(count_parameters(std::string(kGpt2Tiny) + ",tied=false"), 216 + 2 * 1884 + 24 + 132);
  // The published size of GPT-2 small.
  EXPECT_EQ(Gpt2Config{}.parameter_count(), 124'439'808);
}

TEST(ModelGpt2, NamesBuffersAndInputs) {
  const auto model = make_test_model(kGpt2Tiny);
  EXPECT_EQ(model->parameters().size(), 2u + 2u * 12u + 2u);
  EXPECT_EQ(model->parameters()[0].name, "embed.tokens.weight");
  EXPECT_EQ(model->parameters()[2].name, "layers.0.attn.norm.weight");
  ASSERT_EQ(model->buffers().size(), 2u);
  const at::Tensor mask = model->buffers()[1].tensor;
  EXPECT_FALSE(mask[3][3].item<bool>());
  EXPECT_TRUE(mask[3][4].item<bool>());
  EXPECT_FALSE(mask[4][3].item<bool>());
  EXPECT_EQ(make_test_model(std::string(kGpt2Tiny) + ",attention=efficient")->buffers().size(), 1u);
  ASSERT_EQ(model->inputs().size(), 2u);
  for (const NamedTensor& each : model->inputs()) {
    EXPECT_EQ(each.tensor.sizes(), (std::vector<std::int64_t>{2, 7}));
    EXPECT_GE(each.tensor.min().item<std::int64_t>(), 0);
    EXPECT_LT(each.tensor.max().item<std::int64_t>(), 11);
  }
}

// The same network in double precision from elementary operations only.
class Gpt2Reference {
 public:
  Gpt2Reference(const std::vector<NamedTensor>& parameters, std::int64_t heads) : heads_(heads) {
    for (const NamedTensor& each : parameters) {
      p_[each.name] = each.tensor.detach().to(at::kDouble).requires_grad_(true);
    }
  }

  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets) const {
    at::Tensor x = p_.at("embed.tokens.weight").index({tokens}) + p_.at("embed.positions.weight");
    for (int i = 0; p_.count("layers." + std::to_string(i) + ".attn.norm.weight") != 0; ++i) {
      const std::string path = "layers." + std::to_string(i);
      x = x + attention(path + ".attn", norm(path + ".attn.norm", x));
      const at::Tensor up = linear(path + ".mlp.up", norm(path + ".mlp.norm", x));
      const at::Tensor inner = std::sqrt(2 / std::numbers::pi) * (up + 0.044715 * up * up * up);
      x = x + linear(path + ".mlp.down", 0.5 * up * (1 + at::tanh(inner)));
    }
    const auto head = p_.find("head.weight");
    const at::Tensor weight = head == p_.end() ? p_.at("embed.tokens.weight") : head->second;
    const at::Tensor logits = at::matmul(norm("head.norm", x), weight.t());
    const at::Tensor right = logits.gather(2, targets.unsqueeze(2)).squeeze(2);
    return (at::log(at::exp(logits).sum(2)) - right).mean();
  }

  at::Tensor gradient(const std::string& name) const { return p_.at(name).grad(); }

 private:
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor variance = (centred * centred).mean(-1, true);
    return centred / at::sqrt(variance + 1e-5) * p_.at(name + ".weight") + p_.at(name + ".bias");
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::matmul(x, p_.at(name + ".weight").t()) + p_.at(name + ".bias");
  }
  // Row by row: token i sees the tokens 0..i.
  at::Tensor attention(const std::string& path, const at::Tensor& x) const {
    const std::int64_t width = x.size(2);
    const std::int64_t head = width / heads_;
    const at::Tensor qkv = linear(path + ".qkv", x);
    std::vector<at::Tensor> columns;
    for (std::int64_t h = 0; h < heads_; ++h) {
      const at::Tensor q = qkv.narrow(2, h * head, head);
      const at::Tensor k = qkv.narrow(2, width + h * head, head);
      const at::Tensor v = qkv.narrow(2, 2 * width + h * head, head);
      std::vector<at::Tensor> rows;
      for (std::int64_t i = 0; i < x.size(1); ++i) {
        const at::Tensor scores =
            (q.narrow(1, i, 1) * k.narrow(1, 0, i + 1)).sum(2) / std::sqrt(double(head));
        const at::Tensor weights = at::exp(scores) / at::exp(scores).sum(1, true);
        rows.push_back((weights.unsqueeze(2) * v.narrow(1, 0, i + 1)).sum(1, true));
      }
      columns.push_back(at::cat(rows, 1));
    }
    return linear(path + ".projection", at::cat(columns, 2));
  }

  std::int64_t heads_;
  std::map<std::string, at::Tensor> p_;
};

void expect_gpt2_gradients(const std::string& options) {
  TrainingStep step = make_test_step(kGpt2Tiny + options);
  const double value = step.run(0);
  const Gpt2Reference reference(step.parameters(), 3);
  const auto inputs = step.model().inputs();
  const at::Tensor expected = reference.loss(inputs[0].tensor, inputs[1].tensor);
  expected.backward();
  EXPECT_NEAR(value, expected.item<double>(), 1e-6 * value);
  ASSERT_EQ(step.gradients().size(), step.parameters().size());
  for (const NamedTensor& gradient : step.gradients()) {
    const at::Tensor wanted = reference.gradient(gradient.name);
    // Gradients of different parameters differ by orders of magnitude: absolute against the
    // largest.
    const double scale = wanted.abs().max().item<double>();
    EXPECT_TRUE(at::allclose(gradient.tensor.to(at::kDouble), wanted, 1e-3, 2e-5 * scale + 1e-9))
        << options << " " << gradient.name;
  }
}

TEST(ModelGpt2, GradientsAreThoseOfElementaryOperations) {
  expect_gpt2_gradients("");
}
TEST(ModelGpt2, UntiedHeadToo) {
  expect_gpt2_gradients(",tied=false");
}
TEST(ModelGpt2, EfficientAttentionToo) {
  expect_gpt2_gradients(",attention=efficient");
}

TEST(ModelGpt2, EfficientAttentionAgreesWithMath) {
  const std::string text = "gpt2:layers=2,width=64,heads=2,seq=48,vocab=101,batch=2";
  TrainingStep math = make_test_step(text);
  TrainingStep efficient = make_test_step(text + ",attention=efficient");
  EXPECT_NEAR(math.run(0), efficient.run(0), 1e-5);
  const auto expected = math.gradients();
  const auto got = efficient.gradients();
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::allclose(got[i].tensor, expected[i].tensor, 1e-3, 1e-6)) << got[i].name;
  }
}

TEST(ModelGpt2, Bf16RunsNearFp32) {
  const std::string text = "gpt2:layers=2,width=64,heads=2,seq=16,vocab=101,batch=2";
  // Close to a uniform guess, log(101), as any freshly made model.
  EXPECT_NEAR(expect_bf16_near_fp32(text, 0.03, 0.05), std::log(101.0), 0.3);
}

// Every layer begins and ends once in forward and in backward, children inside their parents, and
// when `loss` has ended in forward one tensor of the logits' size is left: the saved log-softmax.
TEST(ModelGpt2, LayersNestAndTheLogitsDieInsideTheLoss) {
  // 2 * 7 * 101 * 4 bytes of logits: no other tensor has that size.
  TrainingStep step = make_test_step("gpt2:layers=1,width=12,heads=3,seq=7,vocab=101,batch=2");
  step.prepare(0);
  LayerLog log(2 * 7 * 101 * 4);
  step.step();
  EXPECT_EQ(log.rows,
            (std::vector<std::string>{
                "<embed", ">embed", "<layers.0", "<layers.0.attn", ">layers.0.attn",
                "<layers.0.mlp", ">layers.0.mlp", ">layers.0", "<head", ">head", "<loss", ">loss",
                // Backward: begins in reverse order. `embed` has no input that needs a gradient.
                "[loss", "]loss", "[head", "]head", "[layers.0", "[layers.0.mlp", "]layers.0.mlp",
                "[layers.0.attn", "]layers.0.attn", "]layers.0", "[embed"}));
  EXPECT_EQ(log.live.at("<loss"), 1) << "the logits";
  EXPECT_EQ(log.live.at(">loss"), 1) << "their log-softmax, saved for backward";
}

// The figures that this model is known by (fp32, batch 4), to 1 %.
TEST(ModelGpt2, PeaksAreTheKnownOnes) {
  const auto steady_peak = [](OptimizerKind optimizer) {
    const Bytes base = test_device().memory().requested;
    TrainingStep step =
        make_test_step("gpt2:layers=6,width=256,seq=256,vocab=1024,batch=4", optimizer);
    Bytes peak = 0;
    for (std::int64_t k = 0; k < 2; ++k) {
      step.prepare(k);
      test_device().reset_peak();
      step.step();
      peak = test_device().memory().peak_requested - base;
    }
    return static_cast<double>(peak);
  };
  EXPECT_NEAR(steady_peak(OptimizerKind::none), 161e6, 1.61e6);
  EXPECT_NEAR(steady_peak(OptimizerKind::adamw), 202e6, 2.02e6);
}

}  // namespace
}  // namespace stowage::executor
