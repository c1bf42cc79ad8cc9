#include "executor/models/llama3.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

constexpr const char* kLlamaTiny =
    "llama3-8b:layers=2,width=24,heads=4,kv_heads=2,hidden=20,seq=7,vocab=11,batch=2";
constexpr const char* kSmall =
    "llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,seq=48,vocab=101,batch=2";

// On the CPU PyTorch's fused kernel takes groups, so that the math kernel, which fp32 gets on a
// GPU, runs only where the fused one is switched off.
class FusedAttentionOff {
 public:
  FusedAttentionOff() { at::globalContext().setSDPUseFlash(false); }
  ~FusedAttentionOff() { at::globalContext().setSDPUseFlash(true); }
  FusedAttentionOff(const FusedAttentionOff&) = delete;
  FusedAttentionOff& operator=(const FusedAttentionOff&) = delete;
};

TEST(ModelLlama3, ParametersByHand) {
  std::int64_t count = 0;
  for (const NamedTensor& each : make_test_model(kLlamaTiny)->parameters())
    count += each.tensor.numel();
  // Block: q and o 2*24*24, k and v 2*24*12, gate, up and down 3*24*20, two norms 2*24:
  // 1152 + 576 + 1440 + 48 = 3216. Embedding and head 2*11*24 = 528; last norm 24.
  EXPECT_EQ(count, 2 * 3216 + 528 + 24);
  // The published size of Llama 3 8B, and of its first nine layers with embedding and head.
  EXPECT_EQ(Llama3Config{}.parameter_count(), 8'030'261'248);
  EXPECT_EQ(Llama3Config{.layers = 9}.parameter_count(), 3'013'685'248);
}

TEST(ModelLlama3, NamesBuffersAndInputs) {
  const auto model = make_test_model(kLlamaTiny);
  const auto parameters = model->parameters();
  ASSERT_EQ(parameters.size(), 1u + 2u * 9u + 2u);
  EXPECT_EQ(parameters[0].name, "embed.tokens.weight");
  EXPECT_EQ(parameters[1].name, "layers.0.attn.norm.weight");
  EXPECT_EQ(parameters[3].name, "layers.0.attn.k.weight");
  EXPECT_EQ(parameters[3].tensor.sizes(), (std::vector<std::int64_t>{12, 24}));
  EXPECT_EQ(parameters.back().name, "head.weight");
  ASSERT_EQ(model->buffers().size(), 1u);
  const at::Tensor frequencies = model->buffers()[0].tensor;
  ASSERT_EQ(frequencies.sizes(), (std::vector<std::int64_t>{3}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(frequencies[i].item<double>(), std::pow(500000.0, -2.0 * i / 6), 1e-8);
  }
  ASSERT_EQ(model->inputs().size(), 1u) << "ones need no targets";
  EXPECT_EQ(make_test_model(std::string(kLlamaTiny) + ",loss=cross-entropy")->inputs().size(), 2u);
}

// The same network in double precision from elementary operations only.
class LlamaReference {
 public:
  LlamaReference(const std::vector<NamedTensor>& parameters, std::int64_t heads,
                 std::int64_t kv_heads)
      : heads_(heads), group_(heads / kv_heads) {
    for (const NamedTensor& each : parameters) {
      p_[each.name] = each.tensor.detach().to(at::kDouble).requires_grad_(true);
    }
  }

  at::Tensor logits(const at::Tensor& tokens) const {
    at::Tensor x = p_.at("embed.tokens.weight").index({tokens});
    for (int i = 0; p_.count("layers." + std::to_string(i) + ".attn.norm.weight") != 0; ++i) {
      const std::string path = "layers." + std::to_string(i);
      x = x + attention(path + ".attn", norm(path + ".attn.norm", x));
      const at::Tensor y = norm(path + ".mlp.norm", x);
      const at::Tensor gate = linear(path + ".mlp.gate", y);
      const at::Tensor product = gate / (1 + at::exp(-gate)) * linear(path + ".mlp.up", y);
      x = x + linear(path + ".mlp.down", product);
    }
    return linear("head", norm("head.norm", x));
  }

  at::Tensor gradient(const std::string& name) const { return p_.at(name).grad(); }

 private:
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    return x / at::sqrt((x * x).mean(-1, true) + 1e-5) * p_.at(name + ".weight");
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::matmul(x, p_.at(name + ".weight").t());
  }
  // One head's columns, each pair (i, i + d/2) turned by position * base^(-2i/d).
  static at::Tensor turned(const at::Tensor& x) {
    const std::int64_t half = x.size(2) / 2;
    std::vector<at::Tensor> left;
    std::vector<at::Tensor> right;
    const at::Tensor position = at::arange(x.size(1), x.options()).unsqueeze(0);
    for (std::int64_t i = 0; i < half; ++i) {
      const at::Tensor angle = position * std::pow(500000.0, -double(i) / double(half));
      const at::Tensor a = x.select(2, i);
      const at::Tensor b = x.select(2, i + half);
      left.push_back(a * at::cos(angle) - b * at::sin(angle));
      right.push_back(b * at::cos(angle) + a * at::sin(angle));
    }
    return at::cat({at::stack(left, 2), at::stack(right, 2)}, 2);
  }
  // Row by row: token i sees the tokens 0..i.
  at::Tensor attention(const std::string& path, const at::Tensor& x) const {
    const at::Tensor all_q = linear(path + ".q", x);
    const at::Tensor all_k = linear(path + ".k", x);
    const at::Tensor all_v = linear(path + ".v", x);
    const std::int64_t d = all_q.size(2) / heads_;
    std::vector<at::Tensor> columns;
    for (std::int64_t h = 0; h < heads_; ++h) {
      const at::Tensor q = turned(all_q.narrow(2, h * d, d));
      const at::Tensor k = turned(all_k.narrow(2, h / group_ * d, d));
      const at::Tensor v = all_v.narrow(2, h / group_ * d, d);
      std::vector<at::Tensor> rows;
      for (std::int64_t i = 0; i < x.size(1); ++i) {
        const at::Tensor scores =
            (q.narrow(1, i, 1) * k.narrow(1, 0, i + 1)).sum(2) / std::sqrt(double(d));
        const at::Tensor weights = at::exp(scores) / at::exp(scores).sum(1, true);
        rows.push_back((weights.unsqueeze(2) * v.narrow(1, 0, i + 1)).sum(1, true));
      }
      columns.push_back(at::cat(rows, 1));
    }
    return linear(path + ".o", at::cat(columns, 2));
  }

  std::int64_t heads_;
  std::int64_t group_;
  std::map<std::string, at::Tensor> p_;
};

void expect_llama3_gradients(const std::string& options, std::int64_t kv_heads = 2) {
  TrainingStep step = make_test_step(kLlamaTiny + options);
  const double value = step.run(0);
  const LlamaReference reference(step.parameters(), 4, kv_heads);
  const auto inputs = step.model().inputs();
  const at::Tensor logits = reference.logits(inputs[0].tensor);
  if (inputs.size() == 1) {
    logits.sum().backward();
    EXPECT_NEAR(value, logits[0][0][0].item<double>(), 1e-5) << "the logits' first element";
  } else {
    const at::Tensor right = logits.gather(2, inputs[1].tensor.unsqueeze(2)).squeeze(2);
    const at::Tensor expected = (at::log(at::exp(logits).sum(2)) - right).mean();
    expected.backward();
    EXPECT_NEAR(value, expected.item<double>(), 1e-6 * value);
  }
  ASSERT_EQ(step.gradients().size(), step.parameters().size());
  for (const NamedTensor& gradient : step.gradients()) {
    const at::Tensor wanted = reference.gradient(gradient.name);
    const double scale = wanted.abs().max().item<double>();
    EXPECT_GT(scale, 0) << gradient.name;
    EXPECT_TRUE(at::allclose(gradient.tensor.to(at::kDouble), wanted, 1e-3, 2e-5 * scale))
        << options << " " << gradient.name;
  }
}

TEST(ModelLlama3, GradientsOfOnesAreThoseOfElementaryOperations) {
  expect_llama3_gradients("");
}
TEST(ModelLlama3, CrossEntropyToo) {
  expect_llama3_gradients(",loss=cross-entropy");
}
TEST(ModelLlama3, EfficientAttentionToo) {
  expect_llama3_gradients(",attention=efficient");
  expect_llama3_gradients(",attention=efficient,loss=cross-entropy");
}
TEST(ModelLlama3, TheMathKernelToo) {
  const FusedAttentionOff math;
  expect_llama3_gradients("");
  expect_llama3_gradients(",loss=cross-entropy");
}

TEST(ModelLlama3, EveryQueryHeadMayHaveItsOwnKeys) {
  const std::string text =
      "llama3-8b:layers=2,width=24,heads=4,kv_heads=4,hidden=20,seq=7,vocab=11,batch=2";
  TrainingStep math = make_test_step(text);
  TrainingStep efficient = make_test_step(text + ",attention=efficient");
  EXPECT_EQ(math.run(0), efficient.run(0)) << "the same ops";
  const LlamaReference reference(math.parameters(), 4, 4);
  reference.logits(math.model().inputs()[0].tensor).sum().backward();
  for (const NamedTensor& gradient : math.gradients()) {
    const at::Tensor wanted = reference.gradient(gradient.name);
    const double scale = wanted.abs().max().item<double>();
    EXPECT_TRUE(at::allclose(gradient.tensor.to(at::kDouble), wanted, 1e-3, 2e-5 * scale))
        << gradient.name;
  }
}

TEST(ModelLlama3, Bf16RunsNearFp32) {
  for (const char* const attention : {"math", "efficient"}) {
    const std::string text = std::string(kSmall) + ",attention=" + attention;
    const double loss = expect_bf16_near_fp32(text + ",loss=cross-entropy", 0.03, 0.05);
    EXPECT_NEAR(loss, std::log(101.0), 0.3) << "a uniform guess, as freshly made";
    TrainingStep ones = make_test_step(text + ",dtype=bf16");
    ones.run(0);
    ASSERT_EQ(ones.gradients().size(), ones.parameters().size());
    for (const NamedTensor& each : ones.gradients()) {
      EXPECT_EQ(each.tensor.scalar_type(), at::kBFloat16);
      EXPECT_TRUE(at::isfinite(each.tensor).all().item<bool>()) << each.name;
    }
    EXPECT_EQ(ones.model().buffers()[0].tensor.scalar_type(), at::kFloat);
  }
}

TEST(ModelLlama3, LayersNestAndTheLogitsLiveAsInPython) {
  // 2 * 7 * 101 * 4 bytes of logits: no other tensor has that size.
  const std::string text =
      "llama3-8b:layers=1,width=24,heads=4,kv_heads=2,hidden=20,seq=7,vocab=101,batch=2";
  {
    TrainingStep step = make_test_step(text);
    step.prepare(0);
    LayerLog log(2 * 7 * 101 * 4);
    step.step();
    EXPECT_EQ(log.rows, (std::vector<std::string>{
                            "<embed", ">embed", "<layers.0", "<layers.0.attn", ">layers.0.attn",
                            "<layers.0.mlp", ">layers.0.mlp", ">layers.0", "<head", ">head",
                            "[head", "]head", "[layers.0", "[layers.0.mlp", "]layers.0.mlp",
                            "[layers.0.attn", "]layers.0.attn", "]layers.0", "[embed"}));
    EXPECT_EQ(log.most, 2) << "the logits and their ones, no copy";
    EXPECT_EQ(log.live.at("]layers.0"), 2) << "to the end: the caller of backward() holds both";
  }
  TrainingStep step = make_test_step(text + ",loss=cross-entropy");
  step.prepare(0);
  LayerLog log(2 * 7 * 101 * 4);
  step.step();
  ASSERT_GT(log.rows.size(), 12u);
  EXPECT_EQ(log.rows[10], "<loss");
  EXPECT_EQ(log.most, 3) << "log-softmax and the two gradients";
  EXPECT_EQ(log.live.at("]layers.0"), 0);
}

// Against transformers 5.23 under PyTorch 2.11 with the same parameters and tokens: the peak of a
// steady step, and what the first one returns.
TEST(ModelLlama3, PeaksAndLossesAreThoseOfTransformers) {
  const auto expect = [](const std::string& options, double bytes, double first_loss) {
    const Bytes base = test_device().memory().requested;
    TrainingStep step = make_test_step(
        "llama3-8b:layers=2,width=256,heads=4,kv_heads=2,hidden=512,vocab=512,seq=64" + options);
    const double tolerance = options.find("bf16") == std::string::npos ? 1e-5 : 1e-3;
    EXPECT_NEAR(step.run(0), first_loss, tolerance) << options;
    step.prepare(1);
    test_device().reset_peak();
    step.step();
    const Bytes peak = test_device().memory().peak_requested - base;
    EXPECT_NEAR(static_cast<double>(peak), bytes, 1e-3 * bytes) << options;
  };
  expect("", 29'427'840, -0.2476429);
  expect(",attention=efficient", 30'476'416, -0.2476429);
  expect(",loss=cross-entropy", 28'384'392, 6.2917838);
  expect(",loss=cross-entropy,dtype=bf16", 17'093'256, 6.3121);
  // The attention matrices are kept: 2 layers * 8 sequences * 4 heads * 64 * 64 floats, 1 MB.
  const FusedAttentionOff math;
  expect("", 31'508'608, -0.2476429);
}

}  // namespace
}  // namespace stowage::executor
