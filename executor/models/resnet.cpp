#include "executor/models/resnet.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "executor/layer.h"
#include "executor/models/common_options.h"
#include "executor/models/consume.h"

namespace stowage::executor {

namespace {

constexpr double kResnetNormEpsilon = 1e-5;
constexpr double kMomentum = 0.1;
constexpr double kClassifierDeviation = 0.01;
constexpr std::int64_t kStemEdge = 7;
constexpr std::size_t kStages = 4;
constexpr std::int64_t kExpansion = 4;  // of the channels by a block's last convolution
constexpr std::int64_t kMostStageWidth = 1 << 14;

// What a stride of 2 leaves of an edge, by any of the convolutions and the pool.
std::int64_t halved(std::int64_t edge) {
  return (edge + 1) / 2;
}

// One block of the network as counts; `in` channels come, kExpansion * `inner` go.
struct BlockShape {
  std::size_t stage;
  std::int64_t number;  // in its stage
  std::int64_t in;
  std::int64_t inner;
  std::int64_t stride;
  std::int64_t edge;  // of what it hands on
};

std::vector<BlockShape> shapes_of(const ResNetConfig& config) {
  std::vector<BlockShape> shapes;
  std::int64_t in = config.width;
  std::int64_t edge = halved(halved(config.task.image));
  for (std::size_t stage = 0; stage < config.blocks.size(); ++stage) {
    const std::int64_t inner = config.width << stage;
    if (stage > 0) edge = halved(edge);
    for (std::int64_t n = 0; n < config.blocks[stage]; ++n) {
      shapes.push_back({stage, n, in, inner, stage > 0 && n == 0 ? 2 : 1, edge});
      in = kExpansion * inner;
    }
  }
  return shapes;
}

std::int64_t last_channels(const ResNetConfig& config) {
  return kExpansion * (config.width << (kStages - 1));
}

}  // namespace

ModelInfo resnet50_info() {
  return {.name = "resnet50",
          .summary = "ResNet-50, a convolutional image classifier with batch norms",
          .options = {{"image", "224", "pixels of an edge of the images"},
                      {"classes", "1000", "number of classes"},
                      {"blocks", "3-4-6-3", "bottleneck blocks of the four stages"},
                      {"width", "64", "channels behind the stem"},
                      {"channels_last", "false", "images and kernels in that memory format"},
                      {"loss", "cross-entropy", "cross-entropy, or mean (of the logits)"}},
          .default_batch = 32};
}

ResNetConfig read_resnet(OptionReader& reader, std::int64_t batch) {
  ResNetConfig config;
  config.task.image = reader.integer("image", 1, kMostImage);
  config.task.classes = reader.integer("classes", 1, kMostVocab);
  config.blocks = reader.integers("blocks", kStages, 1, kMostLayers);
  config.width = reader.integer("width", 1, kMostStageWidth);
  config.channels_last = reader.boolean("channels_last");
  config.task.cross_entropy = read_cross_entropy(reader, "mean");
  config.task.batch = batch;
  if (batch == 1 && shapes_of(config).back().edge == 1) {
    reader.fail("model 'resnet50': with image=" + std::to_string(config.task.image) +
                    " and batch 1 the last batch norms have one value a channel, of which there "
                    "is no variance",
                "a larger image or batch");
  }
  return config;
}

std::map<std::string, std::string> ResNetConfig::options() const {
  std::string stages;
  for (const std::int64_t count : blocks) {
    stages += (stages.empty() ? "" : "-") + std::to_string(count);
  }
  return {{"image", std::to_string(task.image)},
          {"classes", std::to_string(task.classes)},
          {"blocks", stages},
          {"width", std::to_string(width)},
          {"channels_last", boolean_text(channels_last)},
          {"loss", task.cross_entropy ? "cross-entropy" : "mean"}};
}

std::int64_t ResNetConfig::parameter_count() const {
  const auto unit = [](std::int64_t in, std::int64_t out, std::int64_t edge) {
    return in * out * edge * edge + 2 * out;
  };
  std::int64_t count = unit(kColours, width, kStemEdge);
  for (const BlockShape& each : shapes_of(*this)) {
    const std::int64_t out = kExpansion * each.inner;
    count +=
        unit(each.in, each.inner, 1) + unit(each.inner, each.inner, 3) + unit(each.inner, out, 1);
    if (each.number == 0) count += unit(each.in, out, 1);
  }
  return count + (last_channels(*this) + 1) * task.classes;
}

double ResNetConfig::floor_bytes() const {
  double handed_on = 0;
  for (const BlockShape& each : shapes_of(*this)) {
    handed_on += static_cast<double>(kExpansion * each.inner) * static_cast<double>(each.edge) *
                 static_cast<double>(each.edge);
  }
  return 4 *
         (2 * static_cast<double>(parameter_count()) + static_cast<double>(task.batch) * handed_on);
}

ResNet::ResNet(const ResNetConfig& config, c10::Device device, at::ScalarType dtype,
               std::int64_t seed)
    : format_(config.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous),
      batch_(config.task, at::TensorOptions().device(device).dtype(dtype).memory_format(format_)) {
  ParameterSet set(device, dtype, seed);
  stem_ = make_unit(set, "conv1", "bn1", kColours, config.width, kStemEdge, 2);
  for (const BlockShape& each : shapes_of(config)) {
    const std::int64_t out = kExpansion * each.inner;
    Block block;
    block.path = "layer" + std::to_string(each.stage + 1) + "." + std::to_string(each.number);
    const std::string path = block.path + ".";
    block.first = make_unit(set, path + "conv1", path + "bn1", each.in, each.inner, 1, 1);
    block.second =
        make_unit(set, path + "conv2", path + "bn2", each.inner, each.inner, 3, each.stride);
    block.third = make_unit(set, path + "conv3", path + "bn3", each.inner, out, 1, 1);
    if (each.number == 0) {
      block.shortcut = make_unit(set, path + "downsample.0", path + "downsample.1", each.in, out, 1,
                                 each.stride);
    }
    blocks_.push_back(std::move(block));
  }
  classifier_ = set.linear("fc", last_channels(config), config.task.classes, kClassifierDeviation);
  parameters_ = set.all();
  load_batch(seed);
}

ResNet::Unit ResNet::make_unit(ParameterSet& set, const std::string& convolution,
                               const std::string& norm, std::int64_t in, std::int64_t out,
                               std::int64_t edge, std::int64_t stride) {
  // He et al. 2015, for the outputs: the variance of gradients stays.
  const double deviation = std::sqrt(2.0 / static_cast<double>(out * edge * edge));
  Unit unit;
  unit.kernels = set.kernels(convolution + ".weight", in, out, edge, deviation, format_);
  unit.stride = stride;
  unit.norm = set.norm(norm, out);
  unit.mean = at::zeros({out}, set.options());
  unit.variance = at::full({out}, 1, set.options());
  unit.batches = at::zeros({}, set.options().dtype(at::kLong));
  buffers_.push_back({norm + ".running_mean", unit.mean});
  buffers_.push_back({norm + ".running_var", unit.variance});
  buffers_.push_back({norm + ".num_batches_tracked", unit.batches});
  return unit;
}

at::Tensor ResNet::apply(const Unit& unit, const at::Tensor& x) {
  const std::int64_t padding = unit.kernels.size(2) / 2;
  const at::Tensor y =
      at::conv2d(x, unit.kernels, {}, {unit.stride, unit.stride}, {padding, padding});
  unit.batches.add_(1);
  return at::batch_norm(y, unit.norm.weight, unit.norm.bias, unit.mean, unit.variance,
                        /*training=*/true, kMomentum, kResnetNormEpsilon, /*cudnn_enabled=*/true);
}

at::Tensor ResNet::block(const Block& block, const at::Tensor& x) {
  using Inputs = std::vector<at::Tensor>;
  const auto activated = [](const Unit& unit) {
    return [&unit](const Inputs& in) {
      at::Tensor y = apply(unit, in[0]);
      return at::relu_(y);
    };
  };
  const TensorFn last = [&block](const Inputs& in) {
    at::Tensor y = apply(block.third, in[0]);
    y.add_(block.shortcut ? apply(*block.shortcut, in[1]) : in[1]);
    return at::relu_(y);
  };
  at::Tensor y = layer(block.path + ".conv1", activated(block.first), {x});
  y = layer(block.path + ".conv2", activated(block.second), consume(y));
  Inputs inputs = consume(y);
  inputs.push_back(x);
  return layer(block.path + ".conv3", last, std::move(inputs));
}

BackwardRoot ResNet::forward() {
  using Inputs = std::vector<at::Tensor>;
  const TensorFn stem = [this](const Inputs& in) {
    at::Tensor y = apply(stem_, in[0]);
    return at::max_pool2d(at::relu_(y), {3, 3}, {2, 2}, {1, 1});
  };
  const TensorFn head = [this](const Inputs& in) {
    const at::Tensor pooled = at::flatten(at::adaptive_avg_pool2d(in[0], {1, 1}), 1);
    return at::linear(pooled, classifier_.weight, classifier_.bias);
  };
  at::Tensor x = layer("stem", stem, {batch_.images()});
  for (const Block& each : blocks_) {
    x = layer(
        each.path, [&each](const Inputs& in) { return block(each, in[0]); }, consume(x));
  }
  x = layer("head", head, consume(x));
  x = layer(
      "loss", [this](const Inputs& in) { return ImageBatch::loss(in[0], batch_.targets()); },
      consume(x));
  return {.tensor = std::move(x), .gradient = {}};
}

}  // namespace stowage::executor
