#include "executor/models/llama3.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "executor/layer.h"
#include "executor/models/common_options.h"
#include "executor/models/consume.h"
#include "executor/models/parameter_set.h"
#include "executor/tail.h"

namespace stowage::executor {

namespace {

constexpr double kLlamaNormEpsilon = 1e-5;
constexpr double kRotaryBase = 500'000;
constexpr std::int64_t kLlamaHeadWidth = 128;

// Statements stand one by one, here and below, where C++ leaves the order of operands open: the
// order of forward decides the order of backward.
at::Tensor norm(at::Tensor x, const at::Tensor& weight) {
  const at::ScalarType dtype = x.scalar_type();
  x = x.to(at::kFloat);
  const at::Tensor variance = at::pow(x, 2).mean(-1, /*keepdim=*/true);
  x = at::mul(x, at::rsqrt(at::add(variance, kLlamaNormEpsilon)));
  return at::mul(weight, x.to(dtype));
}

at::Tensor rotate_half(const at::Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor first = x.slice(-1, 0, half);
  const at::Tensor second = x.slice(-1, half);
  return at::cat({at::neg(second), first}, -1);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const at::Tensor straight = at::mul(x, cos);
  return at::add(straight, at::mul(rotate_half(x), sin));
}

// [batch, kv heads, seq, d] -> [batch, kv heads * times, seq, d], a copy unless times is 1.
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), times, x.size(2), x.size(3)})
      .reshape({x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

}  // namespace

ModelInfo llama3_info() {
  return {.name = "llama3-8b",
          .summary = "Llama 3 8B, a decoder-only transformer with grouped-query attention",
          .options = {{"layers", "32", "number of blocks"},
                      {"width", "4096", "features of the residual stream"},
                      {"heads", "width/128", "query heads; must divide width into even parts"},
                      {"kv_heads", "heads/4", "key and value heads; must divide heads"},
                      {"hidden", "7*width/2", "features inside the perceptron"},
                      {"seq", "1024", "tokens in a sequence"},
                      {"vocab", "128256", "number of different tokens"},
                      {"attention", "math",
                       "math (groups: PyTorch's math kernel in fp32) or "
                       "efficient (keys and values repeated)"},
                      {"loss", "ones", "ones (backward of the logits with ones) or cross-entropy"},
                      {"data", "random", kDataHelp, /*is_silent_by_default=*/true}},
          .default_batch = 8};
}

Llama3Config read_llama3(OptionReader& reader, std::int64_t batch) {
  Llama3Config config;
  config.layers = reader.integer("layers", 1, kMostLayers);
  config.width = reader.integer("width", 1, kMostWidth);
  const std::int64_t heads = std::max<std::int64_t>(1, config.width / kLlamaHeadWidth);
  config.heads = reader.integer_or("heads", heads, 1, kMostWidth);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, config.heads / 4);
  config.kv_heads = reader.integer_or("kv_heads", kv_heads, 1, kMostWidth);
  const std::int64_t hidden = std::max<std::int64_t>(1, 7 * config.width / 2);
  config.hidden = reader.integer_or("hidden", hidden, 1, 4 * kMostWidth);
  config.seq = reader.integer("seq", 1, kMostSeq);
  config.vocab = reader.integer("vocab", 1, kMostVocab);
  config.efficient_attention = read_efficient_attention(reader);
  config.cross_entropy = read_cross_entropy(reader, "ones");
  config.text = read_text_data(reader, config.vocab);
  if (config.text && !config.cross_entropy) {
    reader.fail("model 'llama3-8b': data=text with loss=ones, which has no targets to learn",
                "add loss=cross-entropy");
  }
  config.batch = batch;
  if (config.width % config.heads != 0 || config.head_width() % 2 != 0) {
    reader.fail("model 'llama3-8b': width=" + std::to_string(config.width) +
                    " is not an even multiple of heads=" + std::to_string(config.heads),
                "the rotary embedding turns pairs: set heads to a divisor of width/2");
  }
  if (config.heads % config.kv_heads != 0) {
    reader.fail("model 'llama3-8b': heads=" + std::to_string(config.heads) +
                    " is not a multiple of kv_heads=" + std::to_string(config.kv_heads),
                "set kv_heads to a divisor of heads");
  }
  return config;
}

std::map<std::string, std::string> Llama3Config::options() const {
  return {{"layers", std::to_string(layers)},
          {"width", std::to_string(width)},
          {"heads", std::to_string(heads)},
          {"kv_heads", std::to_string(kv_heads)},
          {"hidden", std::to_string(hidden)},
          {"seq", std::to_string(seq)},
          {"vocab", std::to_string(vocab)},
          {"attention", attention_text(efficient_attention)},
          {"loss", cross_entropy ? "cross-entropy" : "ones"},
          {"data", data_text(text)}};
}

std::int64_t Llama3Config::parameter_count() const {
  const std::int64_t attention = 2 * width * (width + kv_heads * head_width());
  const std::int64_t per_block = attention + 3 * width * hidden + 2 * width;
  return 2 * vocab * width + layers * per_block + width;
}

double Llama3Config::floor_bytes() const {
  const auto w = static_cast<double>(width);
  const auto rows = static_cast<double>(batch) * static_cast<double>(seq);
  const auto v = static_cast<double>(vocab);
  const auto l = static_cast<double>(layers);
  const double per_block = 2 * w * w + 3 * w * static_cast<double>(hidden);
  const double logits = (cross_entropy ? 3 : 2) * rows * v;
  return 4 * (2 * (2 * v * w + l * per_block) + rows * w * l + logits);
}

Llama3::Llama3(const Llama3Config& config, c10::Device device, at::ScalarType dtype,
               std::int64_t seed)
    : config_(config), dtype_(dtype) {
  ParameterSet set(device, dtype, seed);
  const std::int64_t w = config.width;
  const std::int64_t kv = config.kv_heads * config.head_width();
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    return set.normal(name + ".weight", {out, in}, kDeviation);
  };
  const auto rms_norm = [&](const std::string& name) {
    return set.constant(name + ".weight", {w}, 1);
  };

  tokens_weight_ = set.normal("embed.tokens.weight", {config.vocab, w}, kDeviation);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    Block block;
    block.path = path;
    block.norm1 = rms_norm(path + ".attn.norm");
    block.q = linear(path + ".attn.q", w, w);
    block.k = linear(path + ".attn.k", w, kv);
    block.v = linear(path + ".attn.v", w, kv);
    block.o = linear(path + ".attn.o", w, w);
    block.norm2 = rms_norm(path + ".mlp.norm");
    block.gate = linear(path + ".mlp.gate", w, config.hidden);
    block.up = linear(path + ".mlp.up", w, config.hidden);
    block.down = linear(path + ".mlp.down", config.hidden, w);
    blocks_.push_back(std::move(block));
  }
  last_norm_ = rms_norm("head.norm");
  head_weight_ = linear("head", w, config.vocab);
  parameters_ = set.all();

  const at::TensorOptions floats = set.options().dtype(at::kFloat);
  const at::Tensor exponents =
      at::arange(0, config.head_width(), 2, floats).div(static_cast<double>(config.head_width()));
  inverse_frequencies_ = at::pow(kRotaryBase, exponents).reciprocal();
  const at::TensorOptions integers = set.options().dtype(at::kLong);
  batch_.emplace(TokenTask{.batch = config.batch,
                           .seq = config.seq,
                           .vocab = config.vocab,
                           .is_text = config.text,
                           .has_targets = config.cross_entropy},
                 integers);
  batch_->load(seed);
}

std::vector<NamedTensor> Llama3::buffers() const {
  return {{"rotary.inverse_frequencies", inverse_frequencies_}};
}

std::vector<NamedTensor> Llama3::inputs() const {
  return batch_->inputs();
}

void Llama3::load_batch(std::int64_t seed) {
  batch_->load(seed);
}

// The products with 1 are transformers' attention scaling.
Llama3::Rotary Llama3::rotary() const {
  const c10::NoGradGuard no_grad;
  const at::Tensor positions = at::arange(config_.seq, batch_->tokens().options()).unsqueeze(0);
  const at::Tensor angles = at::mul(positions.unsqueeze(-1).to(at::kFloat), inverse_frequencies_);
  const at::Tensor both = at::cat({angles, angles}, -1);
  const at::Tensor cos = at::mul(at::cos(both), 1.0);
  const at::Tensor sin = at::mul(at::sin(both), 1.0);
  return {cos.to(dtype_), sin.to(dtype_)};
}

at::Tensor Llama3::attend(const at::Tensor& query, at::Tensor key, at::Tensor value) const {
  const std::int64_t group = config_.heads / config_.kv_heads;
  if (config_.efficient_attention) {
    key = repeat_heads(key, group);
    value = repeat_heads(value, group);
  }
  const bool grouped = group > 1 && !config_.efficient_attention;
  const double scale = 1.0 / std::sqrt(static_cast<double>(config_.head_width()));
  return at::scaled_dot_product_attention(query, key, value, {}, /*dropout_p=*/0.0,
                                          /*is_causal=*/config_.seq > 1, scale, grouped);
}

at::Tensor Llama3::attention(const Block& block, const at::Tensor& x, const Rotary& turn) const {
  const at::Tensor normed = norm(x, block.norm1);
  const auto project = [&](const at::Tensor& weight) {
    return at::linear(normed, weight)
        .view({x.size(0), x.size(1), -1, config_.head_width()})
        .transpose(1, 2);
  };
  at::Tensor query = project(block.q);
  at::Tensor key = project(block.k);
  const at::Tensor value = project(block.v);
  {
    const at::Tensor cos = turn.cos.unsqueeze(1);
    const at::Tensor sin = turn.sin.unsqueeze(1);
    at::Tensor turned = rotate(query, cos, sin);
    key = rotate(key, cos, sin);
    query = std::move(turned);
  }
  const at::Tensor mixed = attend(query, key, value).transpose(1, 2).contiguous();
  return at::linear(mixed.reshape({x.size(0), x.size(1), -1}), block.o);
}

at::Tensor Llama3::block(const Block& block, const at::Tensor& x, const Rotary& turn) const {
  using Inputs = std::vector<at::Tensor>;
  const TensorFn attention_of = [this, &block](const Inputs& in) {
    return attention(block, in[0], {in[1], in[2]});
  };
  const TensorFn mlp = [&block](const Inputs& in) {
    const at::Tensor normed = norm(in[0], block.norm2);
    const at::Tensor gate = at::silu(at::linear(normed, block.gate));
    const at::Tensor up = at::linear(normed, block.up);
    return at::linear(at::mul(gate, up), block.down);
  };
  const at::Tensor middle =
      at::add(x, layer(block.path + ".attn", attention_of, {x, turn.cos, turn.sin}));
  return at::add(middle, layer(block.path + ".mlp", mlp, {middle}));
}

BackwardRoot Llama3::head(at::Tensor x, const at::Tensor& targets) const {
  using Inputs = std::vector<at::Tensor>;
  const TensorFn head = [this](const Inputs& in) {
    return at::linear(norm(in[0], last_norm_), head_weight_);
  };
  // In float32, as transformers' loss.
  const TensorFn loss = [this, targets](const Inputs& in) {
    return at::cross_entropy_loss(in[0].to(at::kFloat).view({-1, config_.vocab}),
                                  targets.view({-1}));
  };
  x = layer("head", head, consume(x));
  if (config_.cross_entropy) return {.tensor = layer("loss", loss, consume(x)), .gradient = {}};
  at::Tensor ones = at::ones_like(x);
  return {.tensor = std::move(x), .gradient = std::move(ones)};
}

BackwardRoot Llama3::forward_of(const at::Tensor& tokens, const at::Tensor& targets) const {
  using Inputs = std::vector<at::Tensor>;
  const TensorFn embed = [this](const Inputs& in) { return at::embedding(tokens_weight_, in[0]); };
  at::Tensor x = layer("embed", embed, {tokens});
  {
    const Rotary turn = rotary();
    for (const Block& each : blocks_) {
      const TensorFn fn = [this, &each](const Inputs& in) {
        return block(each, in[0], {in[1], in[2]});
      };
      Inputs inputs = consume(x);
      inputs.insert(inputs.end(), {turn.cos, turn.sin});
      x = layer(each.path, fn, std::move(inputs));
    }
  }
  Inputs inputs = consume(x);
  if (config_.cross_entropy) inputs.push_back(targets);
  return tail("head",
              [this](Inputs in) {
                return head(std::move(in[0]), config_.cross_entropy ? in[1] : at::Tensor());
              },
              std::move(inputs), {.dimensions = 2});
}

BackwardRoot Llama3::forward() {
  using Inputs = std::vector<at::Tensor>;
  Inputs inputs{batch_->tokens()};
  if (config_.cross_entropy) inputs.push_back(batch_->targets());
  return tail(
      kWholeStep,
      [this](const Inputs& in) {
        return forward_of(in[0], config_.cross_entropy ? in[1] : at::Tensor());
      },
      std::move(inputs));
}

}  // namespace stowage::executor
