// A copy of the built-in gpt2 (math attention, tied head) as a user's plugin. Built with
// KEEPS_ONE_MORE it has a planted regression: it keeps the output of each mlp until the next step,
// as somebody does who wants to log it.
#include <ATen/ATen.h>
#include <stowage/layer.h>
#include <stowage/model.h>
#include <stowage/plugin.h>

#include <limits>
#include <utility>

namespace {

using stowage::layer;
using stowage::executor::Affine;
using stowage::executor::BackwardRoot;
using stowage::executor::consume;
using stowage::executor::Model;
using stowage::executor::ModelInfo;
using stowage::executor::ModelSpec;
using stowage::executor::NamedTensor;
using Inputs = std::vector<at::Tensor>;

struct Sizes {
  std::int64_t layers, width, heads, seq, vocab, batch;
};

struct Block {
  std::string path;
  Affine norm1, qkv, projection, norm2, up, down;
};

at::Tensor norm(const at::Tensor& x, const Affine& affine) {
  return at::layer_norm(x, affine.weight.sizes(), affine.weight, affine.bias, 1e-5);
}

class Gpt2Copy final : public Model {
 public:
  Gpt2Copy(const Sizes& sizes, c10::Device device, at::ScalarType dtype, std::int64_t seed)
      : sizes_(sizes) {
    stowage::executor::ParameterSet set(device, dtype, seed);
    const std::int64_t w = sizes.width;
    const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      return set.linear(name, in, out, 0.02);
    };
    const auto layer_norm = [&](const std::string& name) { return set.norm(name, w); };
    words_ = set.normal("embed.tokens.weight", {sizes.vocab, w}, 0.02);
    places_ = set.normal("embed.positions.weight", {sizes.seq, w}, 0.02);
    for (std::int64_t i = 0; i < sizes.layers; ++i) {
      const std::string path = "layers." + std::to_string(i);
      blocks_.push_back({path, layer_norm(path + ".attn.norm"),
                         linear(path + ".attn.qkv", w, 3 * w),
                         linear(path + ".attn.projection", w, w), layer_norm(path + ".mlp.norm"),
                         linear(path + ".mlp.up", w, 4 * w), linear(path + ".mlp.down", 4 * w, w)});
    }
    last_norm_ = layer_norm("head.norm");
    parameters_ = set.all();
    const at::TensorOptions integers = set.options().dtype(at::kLong);
    positions_ = at::arange(sizes.seq, integers);
    mask_ = at::ones({sizes.seq, sizes.seq}, set.options().dtype(at::kBool)).triu(1);
    tokens_ = at::empty({sizes.batch, sizes.seq}, integers);
    targets_ = at::empty({sizes.batch, sizes.seq}, integers);
    load_batch(seed);
  }

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override {
    return {{"embed.position_ids", positions_}, {"causal_mask", mask_}};
  }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override {
    return {{"tokens", tokens_}, {"targets", targets_}};
  }

  void load_batch(std::int64_t seed) override {
    const at::Generator generator = stowage::executor::make_generator(tokens_.device(), seed);
    tokens_.random_(0, sizes_.vocab, generator);
    targets_.random_(0, sizes_.vocab, generator);
  }

  BackwardRoot forward() override {
    for_the_log_.clear();
    at::Tensor x = layer("embed",
                         [this](const Inputs& in) {
                           return at::embedding(words_, in[0]) + at::embedding(places_, positions_);
                         },
                         {tokens_});
    for (const Block& each : blocks_) {
      x = layer(
          each.path, [this, &each](const Inputs& in) { return block(each, in[0]); }, consume(x));
    }
    x = layer(
        "head", [this](const Inputs& in) { return at::linear(norm(in[0], last_norm_), words_); },
        consume(x));
    x = layer(
        "loss",
        [this](const Inputs& in) {
          return at::cross_entropy_loss(in[0].view({-1, sizes_.vocab}), targets_.view({-1}));
        },
        consume(x));
    return {.tensor = std::move(x), .gradient = {}};
  }

 private:
  at::Tensor block(const Block& block, const at::Tensor& x) {
    const at::Tensor middle =
        x + layer(block.path + ".attn",
                  [this, &block](const Inputs& in) { return attention(block, in[0]); }, {x});
    return middle + layer(block.path + ".mlp",
                          [this, &block](const Inputs& in) { return mlp(block, in[0]); }, {middle});
  }

  at::Tensor attention(const Block& block, const at::Tensor& x) const {
    const std::int64_t depth = sizes_.width / sizes_.heads;
    at::Tensor qkv = at::linear(norm(x, block.norm1), block.qkv.weight, block.qkv.bias);
    const auto part = [&](std::int64_t i) {
      return qkv.narrow(2, i * sizes_.width, sizes_.width)
          .view({sizes_.batch, sizes_.seq, sizes_.heads, depth})
          .transpose(1, 2);
    };
    at::Tensor scores = at::matmul(part(0), part(1).transpose(-2, -1));
    scores = at::mul(scores, 1.0 / std::sqrt(static_cast<double>(depth)));
    scores = at::masked_fill(scores, mask_, -std::numeric_limits<double>::infinity());
    scores = at::softmax(scores, -1);
    const at::Tensor mixed = at::matmul(scores, part(2))
                                 .transpose(1, 2)
                                 .reshape({sizes_.batch, sizes_.seq, sizes_.width});
    return at::linear(mixed, block.projection.weight, block.projection.bias);
  }

  at::Tensor mlp(const Block& block, const at::Tensor& x) {
    at::Tensor y = at::linear(norm(x, block.norm2), block.up.weight, block.up.bias);
    y = at::gelu(y, "tanh");
    y = at::linear(y, block.down.weight, block.down.bias);
#ifdef KEEPS_ONE_MORE
    for_the_log_.push_back(y.detach());
#endif
    return y;
  }

  Sizes sizes_;
  at::Tensor words_, places_;
  std::vector<Block> blocks_;
  Affine last_norm_;
  std::vector<NamedTensor> parameters_;
  at::Tensor positions_, mask_, tokens_, targets_;
  std::vector<at::Tensor> for_the_log_;
};

ModelInfo info() {
  return {.name = "gpt2_copy",
          .summary = "GPT-2, a user's copy",
          .options = {{"layers", "3", "number of blocks"},
                      {"width", "64", "features of the residual stream"},
                      {"heads", "2", "attention heads"},
                      {"seq", "48", "tokens in a sequence"},
                      {"vocab", "256", "number of different tokens"}},
          .default_batch = 4};
}

stowage::Result<std::unique_ptr<Model>> make(const ModelSpec& spec, c10::Device device,
                                             at::ScalarType dtype, std::int64_t seed) {
  const ModelInfo declared = info();
  stowage::executor::OptionReader options(declared, spec);
  const auto size = [&options](const char* name) { return options.integer(name, 1, 100'000); };
  const Sizes sizes{size("layers"), size("width"), size("heads"),
                    size("seq"),    size("vocab"), spec.batch};
  if (options.error()) return *options.error();
  return std::unique_ptr<Model>(std::make_unique<Gpt2Copy>(sizes, device, dtype, seed));
}

}  // namespace

STOWAGE_PLUGIN(info, make);
