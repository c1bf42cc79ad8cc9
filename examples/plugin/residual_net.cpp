// A model of one's own as a plugin: residual blocks of layer norm, linear, gelu, linear, and a
// mean-squared error against fixed targets. CMakeLists.txt beside it says how to build and use it.
#include <stowage/layer.h>
#include <stowage/plugin.h>
#include <torch/torch.h>

namespace {

using stowage::executor::BackwardRoot;
using stowage::executor::Model;
using stowage::executor::ModelInfo;
using stowage::executor::ModelSpec;
using stowage::executor::NamedTensor;

struct Block : torch::nn::Module {
  torch::nn::LayerNorm norm;
  torch::nn::Linear up, down;

  explicit Block(std::int64_t width)
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return x + down->forward(torch::gelu(up->forward(norm->forward(x))));
  }
};

class ResidualNet final : public Model {
 public:
  ResidualNet(std::int64_t blocks, std::int64_t width, std::int64_t batch, c10::Device device,
              at::ScalarType dtype, std::int64_t seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    for (std::int64_t i = 0; i < blocks; ++i) {
      auto block = std::make_shared<Block>(width);
      block->to(device, dtype);
      blocks_.push_back(std::move(block));
    }
    const auto options = torch::dtype(dtype).device(device);
    x_ = torch::empty({batch, width}, options);
    y_ = torch::empty({batch, width}, options);
  }

  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> all;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      for (const auto& each : blocks_[i]->named_parameters()) {
        all.push_back({"blocks." + std::to_string(i) + "." + each.key(), each.value()});
      }
    }
    return all;
  }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return {{"x", x_}, {"y", y_}}; }

  // Written in place: the tensors stay the same ones.
  void load_batch(std::int64_t seed) override {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    x_.normal_();
    y_.normal_();
  }

  BackwardRoot forward() override {
    using Inputs = std::vector<torch::Tensor>;
    torch::Tensor x = x_;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      // A layer: a name and a function of its inputs. Moved, so that nothing else holds x.
      x = stowage::layer(
          "blocks." + std::to_string(i),
          [block = blocks_[i]](const Inputs& in) { return block->forward(in[0]); },
          Inputs{std::move(x)});
    }
    return {.tensor = torch::mse_loss(x, y_), .gradient = {}};
  }

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::Tensor x_, y_;
};

ModelInfo info() {
  return {.name = "residual_net",
          .summary = "residual perceptrons",
          .options = {{"blocks", "6", "number of blocks"}, {"width", "64", "features"}},
          .default_batch = 32};
}

stowage::Result<std::unique_ptr<Model>> make(const ModelSpec& spec, c10::Device device,
                                             at::ScalarType dtype, std::int64_t seed) {
  const ModelInfo declared = info();
  stowage::executor::OptionReader options(declared, spec);
  const std::int64_t blocks = options.integer("blocks", 1, 1000);
  const std::int64_t width = options.integer("width", 1, 100'000);
  if (options.error()) return *options.error();
  return std::unique_ptr<Model>(
      std::make_unique<ResidualNet>(blocks, width, spec.batch, device, dtype, seed));
}

}  // namespace

STOWAGE_PLUGIN(info, make);
