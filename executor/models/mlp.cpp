#include "executor/models/mlp.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss.h>

#include <utility>

#include "executor/layer.h"
#include "executor/models/common_options.h"
#include "executor/models/consume.h"
#include "executor/models/parameter_set.h"
#include "executor/tail.h"

namespace stowage::executor {

namespace {

const char* name_of(MlpLoss loss) {
  switch (loss) {
    case MlpLoss::cross_entropy:
      return "cross-entropy";
    case MlpLoss::mean:
      return "mean";
    default:
      return "mse";
  }
}

}  // namespace

ModelInfo mlp_info() {
  return {.name = "mlp",
          .summary = "a stack of two-layer perceptrons",
          .options = {{"layers", "6", "number of perceptrons"},
                      {"width", "1024", "features between them"},
                      {"hidden", "4*width", "features inside them"},
                      {"loss", "mse", "mse, cross-entropy, or mean (of the output; no targets)"}},
          .default_batch = 64};
}

MlpConfig read_mlp(OptionReader& reader, std::int64_t batch) {
  MlpConfig config;
  config.layers = reader.integer("layers", 1, kMostLayers);
  config.width = reader.integer("width", 1, kMostWidth);
  config.hidden = reader.integer_or("hidden", 4 * config.width, 1, 4 * kMostWidth);
  const std::string loss = reader.choice("loss", {"mse", "cross-entropy", "mean"});
  config.loss = loss == "mse"    ? MlpLoss::mse
                : loss == "mean" ? MlpLoss::mean
                                 : MlpLoss::cross_entropy;
  config.batch = batch;
  return config;
}

std::map<std::string, std::string> MlpConfig::options() const {
  return {{"layers", std::to_string(layers)},
          {"width", std::to_string(width)},
          {"hidden", std::to_string(hidden)},
          {"loss", name_of(loss)}};
}

double MlpConfig::floor_bytes() const {
  const auto l = static_cast<double>(layers);
  const auto w = static_cast<double>(width);
  const auto h = static_cast<double>(hidden);
  const auto b = static_cast<double>(batch);
  return 4 * (2 * l * (2 * w * h + w + h) + l * b * (w + 2 * h));
}

Mlp::Mlp(const MlpConfig& config, c10::Device device, at::ScalarType dtype, std::int64_t seed)
    : config_(config) {
  ParameterSet set(device, dtype, seed);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    blocks_.push_back(
        {.path = path,
         .up_weight = set.normal(path + ".up.weight", {config.hidden, config.width}, kDeviation),
         .up_bias = set.constant(path + ".up.bias", {config.hidden}, 0),
         .down_weight =
             set.normal(path + ".down.weight", {config.width, config.hidden}, kDeviation),
         .down_bias = set.constant(path + ".down.bias", {config.width}, 0)});
  }
  parameters_ = set.all();
  input_ = at::empty({config.batch, config.width}, set.options());
  if (config.loss == MlpLoss::cross_entropy) {
    targets_ = at::empty({config.batch}, set.options().dtype(at::kLong));
  } else if (config.loss == MlpLoss::mse) {
    targets_ = at::empty({config.batch, config.width}, set.options());
  }
  load_batch(seed);
}

std::vector<NamedTensor> Mlp::inputs() const {
  if (!targets_.defined()) return {{"input", input_}};
  return {{"input", input_}, {"targets", targets_}};
}

void Mlp::load_batch(std::int64_t seed) {
  const at::Generator generator = make_generator(input_.device(), seed);
  input_.normal_(0.0, 1.0, generator);
  if (config_.loss == MlpLoss::cross_entropy) targets_.random_(0, config_.width, generator);
  if (config_.loss == MlpLoss::mse) targets_.normal_(0.0, 1.0, generator);
}

BackwardRoot Mlp::forward_of(const at::Tensor& input, const at::Tensor& targets) const {
  at::Tensor x = input;
  for (const Block& block : blocks_) {
    const TensorFn fn = [&block](const std::vector<at::Tensor>& inputs) {
      const at::Tensor up = at::linear(inputs[0], block.up_weight, block.up_bias);
      return at::linear(at::gelu(up), block.down_weight, block.down_bias);
    };
    x = layer(block.path, fn, consume(x));
  }
  const TensorFn loss = [this, targets](const std::vector<at::Tensor>& inputs) {
    switch (config_.loss) {
      case MlpLoss::cross_entropy:
        return at::cross_entropy_loss(inputs[0], targets);
      case MlpLoss::mean:
        return at::mean(inputs[0]);
      default:
        return at::mse_loss(inputs[0], targets);
    }
  };
  return {.tensor = layer("loss", loss, consume(x)), .gradient = {}};
}

BackwardRoot Mlp::forward() {
  std::vector<at::Tensor> given{input_};
  if (targets_.defined()) given.push_back(targets_);
  const TailFn all = [this](const std::vector<at::Tensor>& in) {
    return forward_of(in[0], in.size() > 1 ? in[1] : at::Tensor());
  };
  return tail(kWholeStep, all, std::move(given));
}

}  // namespace stowage::executor
