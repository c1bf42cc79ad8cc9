#include "executor/models/gpt2.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "executor/layer.h"
#include "executor/models/common_options.h"
#include "executor/models/consume.h"
#include "executor/tail.h"

namespace stowage::executor {

namespace {

constexpr double kGpt2NormEpsilon = 1e-5;

// The shortest text that reads back as the same number.
std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, weight.sizes(), weight, bias, kGpt2NormEpsilon);
}

}  // namespace

ModelInfo gpt2_info() {
  return {.name = "gpt2",
          .summary = "GPT-2, a decoder-only transformer language model",
          .options = {{"layers", "12", "number of blocks"},
                      {"width", "768", "features of the residual stream"},
                      {"heads", "width/64", "attention heads; must divide width"},
                      {"seq", "1024", "tokens in a sequence"},
                      {"vocab", "50257", "number of different tokens"},
                      {"tied", "true", "the head uses the token embedding's weight"},
                      {"attention", "math", "math (matmul, softmax, matmul) or efficient (fused)"},
                      {"dropout", "0", "probability, in embedding, attention and residuals"},
                      {"data", "random", kDataHelp, /*is_silent_by_default=*/true}},
          .default_batch = 4};
}

Gpt2Config read_gpt2(OptionReader& reader, std::int64_t batch) {
  Gpt2Config config;
  config.layers = reader.integer("layers", 1, kMostLayers);
  config.width = reader.integer("width", 1, kMostWidth);
  config.heads = read_heads(reader, config.width);
  config.seq = reader.integer("seq", 1, kMostSeq);
  config.vocab = reader.integer("vocab", 1, kMostVocab);
  config.tied = reader.boolean("tied");
  config.efficient_attention = read_efficient_attention(reader);
  config.dropout = reader.number("dropout", 0, 1);
  config.text = read_text_data(reader, config.vocab);
  config.batch = batch;
  return config;
}

std::map<std::string, std::string> Gpt2Config::options() const {
  return {{"layers", std::to_string(layers)},
          {"width", std::to_string(width)},
          {"heads", std::to_string(heads)},
          {"seq", std::to_string(seq)},
          {"vocab", std::to_string(vocab)},
          {"tied", boolean_text(tied)},
          {"attention", attention_text(efficient_attention)},
          {"dropout", shortest(dropout)},
          {"data", data_text(text)}};
}

std::int64_t Gpt2Config::parameter_count() const {
  const std::int64_t per_block = 12 * width * width + 13 * width;
  return (tied ? 1 : 2) * vocab * width + seq * width + layers * per_block + 2 * width;
}

double Gpt2Config::floor_bytes() const {
  const auto w = static_cast<double>(width);
  const auto rows = static_cast<double>(batch) * static_cast<double>(seq);
  const auto v = static_cast<double>(vocab);
  const auto l = static_cast<double>(layers);
  const double parameters = (v + static_cast<double>(seq)) * w + l * 12 * w * w;
  return 4 * (2 * parameters + rows * w * l + 3 * rows * v);
}

Gpt2::Gpt2(const Gpt2Config& config, c10::Device device, at::ScalarType dtype, std::int64_t seed)
    : config_(config) {
  ParameterSet set(device, dtype, seed);
  const std::int64_t w = config.width;
  // Residual projections are scaled down by depth, as in the paper.
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));

  tokens_weight_ = set.normal("embed.tokens.weight", {config.vocab, w}, kDeviation);
  positions_weight_ = set.normal("embed.positions.weight", {config.seq, w}, kDeviation);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    Block block;
    block.path = path;
    block.norm1 = set.norm(path + ".attn.norm", w);
    block.qkv = set.linear(path + ".attn.qkv", w, 3 * w, kDeviation);
    block.projection = set.linear(path + ".attn.projection", w, w, residual);
    block.norm2 = set.norm(path + ".mlp.norm", w);
    block.up = set.linear(path + ".mlp.up", w, 4 * w, kDeviation);
    block.down = set.linear(path + ".mlp.down", 4 * w, w, residual);
    blocks_.push_back(std::move(block));
  }
  last_norm_ = set.norm("head.norm", w);
  head_weight_ =
      config.tied ? tokens_weight_ : set.normal("head.weight", {config.vocab, w}, kDeviation);
  parameters_ = set.all();

  const at::TensorOptions integers = set.options().dtype(at::kLong);
  positions_ = at::arange(config.seq, integers);
  if (!config.efficient_attention) {
    mask_ = at::ones({config.seq, config.seq}, set.options().dtype(at::kBool)).triu(1);
  }
  batch_.emplace(
      TokenTask{
          .batch = config.batch, .seq = config.seq, .vocab = config.vocab, .is_text = config.text},
      integers);
  batch_->load(seed);
}

std::vector<NamedTensor> Gpt2::buffers() const {
  std::vector<NamedTensor> buffers{{"embed.position_ids", positions_}};
  if (mask_.defined()) buffers.push_back({"causal_mask", mask_});
  return buffers;
}

std::vector<NamedTensor> Gpt2::inputs() const {
  return batch_->inputs();
}

void Gpt2::load_batch(std::int64_t seed) {
  batch_->load(seed);
}

at::Tensor Gpt2::drop(at::Tensor x) const {
  if (config_.dropout == 0) return x;
  return at::dropout(x, config_.dropout, /*train=*/true);
}

at::Tensor Gpt2::embed(const at::Tensor& tokens) const {
  return drop(at::embedding(tokens_weight_, tokens) + at::embedding(positions_weight_, positions_));
}

at::Tensor Gpt2::attend(at::Tensor query, at::Tensor key, at::Tensor value) const {
  if (config_.efficient_attention) {
    return at::scaled_dot_product_attention(query, key, value, {}, config_.dropout,
                                            /*is_causal=*/true);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(config_.width / config_.heads));
  at::Tensor scores =
      at::matmul(std::exchange(query, {}), std::exchange(key, {}).transpose(-2, -1));
  scores = at::mul(scores, scale);
  scores = at::masked_fill(scores, mask_, -std::numeric_limits<double>::infinity());
  scores = drop(at::softmax(scores, -1));
  return at::matmul(scores, value);
}

at::Tensor Gpt2::attention(const Block& block, const at::Tensor& x) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  const std::int64_t w = config_.width;
  const auto split = [&](const at::Tensor& qkv, std::int64_t part) {
    return qkv.narrow(2, part * w, w)
        .view({batch, seq, config_.heads, w / config_.heads})
        .transpose(1, 2);
  };
  at::Tensor qkv =
      at::linear(norm(x, block.norm1.weight, block.norm1.bias), block.qkv.weight, block.qkv.bias);
  at::Tensor query = split(qkv, 0);
  at::Tensor key = split(qkv, 1);
  at::Tensor value = split(qkv, 2);
  qkv.reset();
  at::Tensor mixed = attend(std::move(query), std::move(key), std::move(value));
  mixed = mixed.transpose(1, 2).reshape({batch, seq, w});
  return drop(at::linear(mixed, block.projection.weight, block.projection.bias));
}

at::Tensor Gpt2::mlp(const Block& block, const at::Tensor& x) const {
  at::Tensor y =
      at::linear(norm(x, block.norm2.weight, block.norm2.bias), block.up.weight, block.up.bias);
  y = at::gelu(y, "tanh");
  return drop(at::linear(y, block.down.weight, block.down.bias));
}

at::Tensor Gpt2::block(const Block& block, const at::Tensor& x) const {
  using Inputs = std::vector<at::Tensor>;
  const at::Tensor middle =
      x + layer(block.path + ".attn",
                [this, &block](const Inputs& inputs) { return attention(block, inputs[0]); }, {x});
  return middle + layer(block.path + ".mlp",
                        [this, &block](const Inputs& inputs) { return mlp(block, inputs[0]); },
                        {middle});
}

at::Tensor Gpt2::loss(const at::Tensor& logits, const at::Tensor& targets) const {
  return at::cross_entropy_loss(logits.view({-1, config_.vocab}), targets.view({-1}));
}

BackwardRoot Gpt2::head(at::Tensor x, const at::Tensor& targets) const {
  using Inputs = std::vector<at::Tensor>;
  x = layer(
      "head",
      [this](const Inputs& in) {
        return at::linear(norm(in[0], last_norm_.weight, last_norm_.bias), head_weight_);
      },
      consume(x));
  x = layer(
      "loss", [this, targets](const Inputs& in) { return loss(in[0], targets); }, consume(x));
  return {.tensor = std::move(x), .gradient = {}};
}

BackwardRoot Gpt2::forward_of(const at::Tensor& tokens, const at::Tensor& targets) const {
  using Inputs = std::vector<at::Tensor>;
  at::Tensor x = layer("embed", [this](const Inputs& in) { return embed(in[0]); }, {tokens});
  for (const Block& each : blocks_) {
    x = layer(
        each.path, [this, &each](const Inputs& in) { return block(each, in[0]); }, consume(x));
  }
  Inputs inputs = consume(x);
  inputs.push_back(targets);
  return tail("head", [this](Inputs in) { return head(std::move(in[0]), in[1]); },
              std::move(inputs), {.dimensions = 2});
}

BackwardRoot Gpt2::forward() {
  return tail(kWholeStep,
              [this](const std::vector<at::Tensor>& in) { return forward_of(in[0], in[1]); },
              {batch_->tokens(), batch_->targets()});
}

}  // namespace stowage::executor
