#include "executor/models/vit.h"

#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <utility>

#include "executor/layer.h"
#include "executor/models/common_options.h"
#include "executor/models/consume.h"
#include "executor/tail.h"

namespace stowage::executor {

namespace {

constexpr double kVitNormEpsilon = 1e-6;

at::Tensor norm(const at::Tensor& x, const Affine& affine) {
  return at::layer_norm(x, affine.weight.sizes(), affine.weight, affine.bias, kVitNormEpsilon);
}

at::Tensor linear(const at::Tensor& x, const Affine& affine) {
  return at::linear(x, affine.weight, affine.bias);
}

}  // namespace

ModelInfo vit_info() {
  return {.name = "vit",
          .summary = "ViT-B/16, a vision transformer",
          .options = {{"layers", "12", "number of blocks"},
                      {"width", "768", "features of the residual stream"},
                      {"heads", "width/64", "attention heads; must divide width"},
                      {"mlp", "4*width", "features inside the perceptron"},
                      {"patch", "16", "pixels of an edge of a patch"},
                      {"image", "224", "pixels of an edge of the images; a multiple of patch"},
                      {"classes", "1000", "number of classes"},
                      {"attention", "efficient", "efficient (fused) or math (matmul, softmax)"},
                      {"loss", "cross-entropy", "cross-entropy, or mean (of the logits)"}},
          .default_batch = 32};
}

VitConfig read_vit(OptionReader& reader, std::int64_t batch) {
  VitConfig config;
  config.layers = reader.integer("layers", 1, kMostLayers);
  config.width = reader.integer("width", 1, kMostWidth);
  config.heads = read_heads(reader, config.width);
  config.mlp = reader.integer_or("mlp", 4 * config.width, 1, 4 * kMostWidth);
  config.patch = reader.integer("patch", 1, kMostImage);
  config.task.image = reader.integer("image", 1, kMostImage);
  config.task.classes = reader.integer("classes", 1, kMostVocab);
  config.efficient_attention = read_efficient_attention(reader);
  config.task.cross_entropy = read_cross_entropy(reader, "mean");
  config.task.batch = batch;
  if (config.task.image % config.patch != 0) {
    reader.fail("model 'vit': image=" + std::to_string(config.task.image) +
                    " is not a multiple of patch=" + std::to_string(config.patch),
                "set patch to a divisor of image");
  }
  return config;
}

std::int64_t VitConfig::tokens() const {
  const std::int64_t edge = task.image / patch;
  return edge * edge + 1;
}

std::map<std::string, std::string> VitConfig::options() const {
  return {{"layers", std::to_string(layers)},
          {"width", std::to_string(width)},
          {"heads", std::to_string(heads)},
          {"mlp", std::to_string(mlp)},
          {"patch", std::to_string(patch)},
          {"image", std::to_string(task.image)},
          {"classes", std::to_string(task.classes)},
          {"attention", attention_text(efficient_attention)},
          {"loss", task.cross_entropy ? "cross-entropy" : "mean"}};
}

std::int64_t VitConfig::parameter_count() const {
  const std::int64_t embedding = (kColours * patch * patch + 1 + 1 + tokens()) * width;
  const std::int64_t attention = 4 * width * (width + 1);
  const std::int64_t perceptron = 2 * width * mlp + mlp + width;
  const std::int64_t norms = 4 * width;
  return embedding + layers * (attention + perceptron + norms) + 2 * width +
         (width + 1) * task.classes;
}

double VitConfig::floor_bytes() const {
  const auto w = static_cast<double>(width);
  const auto l = static_cast<double>(layers);
  const double per_block = 4 * w * w + 2 * w * static_cast<double>(mlp);
  const double parameters = l * per_block + w * static_cast<double>(task.classes);
  const double rows = static_cast<double>(task.batch) * static_cast<double>(tokens());
  return 4 * (2 * parameters + rows * w * l);
}

Vit::Vit(const VitConfig& config, c10::Device device, at::ScalarType dtype, std::int64_t seed)
    : config_(config), batch_(config.task, at::TensorOptions().device(device).dtype(dtype)) {
  ParameterSet set(device, dtype, seed);
  const std::int64_t w = config.width;
  class_token_ = set.normal("embed.class_token", {1, 1, w}, kDeviation);
  patches_.weight = set.kernels("embed.patches.weight", kColours, w, config.patch, kDeviation,
                                at::MemoryFormat::Contiguous);
  patches_.bias = set.constant("embed.patches.bias", {w}, 0);
  positions_ = set.normal("embed.positions", {1, config.tokens(), w}, kDeviation);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    Block block;
    block.path = path;
    block.norm1 = set.norm(path + ".attn.norm", w);
    block.qkv = set.linear(path + ".attn.qkv", w, 3 * w, kDeviation);
    block.projection = set.linear(path + ".attn.projection", w, w, kDeviation);
    block.norm2 = set.norm(path + ".mlp.norm", w);
    block.up = set.linear(path + ".mlp.up", w, config.mlp, kDeviation);
    block.down = set.linear(path + ".mlp.down", config.mlp, w, kDeviation);
    blocks_.push_back(std::move(block));
  }
  last_norm_ = set.norm("head.norm", w);
  classifier_ = set.linear("head", w, config.task.classes, kDeviation);
  parameters_ = set.all();
  load_batch(seed);
}

at::Tensor Vit::embed(const at::Tensor& images) const {
  const std::int64_t batch = images.size(0);
  at::Tensor x = at::conv2d(images, patches_.weight, patches_.bias, {config_.patch, config_.patch});
  x = x.reshape({batch, config_.width, config_.tokens() - 1}).permute({0, 2, 1});
  x = at::cat({class_token_.expand({batch, -1, -1}), x}, 1);
  return at::add(x, positions_);
}

at::Tensor Vit::attend(at::Tensor query, at::Tensor key, at::Tensor value) const {
  const std::int64_t tokens = query.size(0);
  const std::int64_t batch = query.size(1);
  const std::int64_t head = config_.width / config_.heads;
  for (at::Tensor* const each : {&query, &key, &value}) {
    *each = each->view({tokens, batch * config_.heads, head}).transpose(0, 1);
  }
  if (!config_.efficient_attention) {
    query = at::mul(query, std::sqrt(1.0 / static_cast<double>(head)));
    at::Tensor scores = at::bmm(query, key.transpose(-2, -1));
    scores = at::softmax(scores, -1);
    return at::bmm(scores, value).transpose(0, 1).contiguous().view({tokens * batch, -1});
  }
  for (at::Tensor* const each : {&query, &key, &value}) {
    *each = each->view({batch, config_.heads, tokens, head});
  }
  return at::scaled_dot_product_attention(query, key, value)
      .permute({2, 0, 1, 3})
      .contiguous()
      .view({tokens * batch, -1});
}

at::Tensor Vit::attention(const Block& block, const at::Tensor& x) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t tokens = x.size(1);
  at::Tensor qkv = linear(norm(x, block.norm1).transpose(1, 0), block.qkv);
  qkv =
      qkv.unflatten(-1, {3, config_.width}).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous();
  const at::Tensor mixed = attend(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2));
  return linear(mixed, block.projection).view({tokens, batch, -1}).transpose(1, 0);
}

at::Tensor Vit::block(const Block& block, const at::Tensor& x) const {
  using Inputs = std::vector<at::Tensor>;
  const TensorFn attention_of = [this, &block](const Inputs& in) {
    return attention(block, in[0]);
  };
  const TensorFn mlp = [&block](const Inputs& in) {
    at::Tensor y = linear(norm(in[0], block.norm2), block.up);
    y = at::gelu(y);
    return linear(y, block.down);
  };
  const at::Tensor middle = at::add(layer(block.path + ".attn", attention_of, {x}), x);
  return at::add(middle, layer(block.path + ".mlp", mlp, {middle}));
}

BackwardRoot Vit::forward_of(const at::Tensor& images, const at::Tensor& targets) const {
  using Inputs = std::vector<at::Tensor>;
  at::Tensor x = layer("embed", [this](const Inputs& in) { return embed(in[0]); }, {images});
  for (const Block& each : blocks_) {
    x = layer(
        each.path, [this, &each](const Inputs& in) { return block(each, in[0]); }, consume(x));
  }
  x = layer(
      "head",
      [this](const Inputs& in) {
        return linear(norm(in[0], last_norm_).select(1, 0), classifier_);
      },
      consume(x));
  x = layer(
      "loss", [targets](const Inputs& in) { return ImageBatch::loss(in[0], targets); }, consume(x));
  return {.tensor = std::move(x), .gradient = {}};
}

BackwardRoot Vit::forward() {
  std::vector<at::Tensor> inputs;
  for (const NamedTensor& each : batch_.inputs()) inputs.push_back(each.tensor);
  const TailFn all = [this](const std::vector<at::Tensor>& in) {
    return forward_of(in[0], in.size() > 1 ? in[1] : at::Tensor());
  };
  return tail(kWholeStep, all, std::move(inputs));
}

}  // namespace stowage::executor
