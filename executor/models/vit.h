// A vision transformer (Dosovitskiy et al. 2020) as torchvision 0.26 trains vit_b_16, op for op:
// patches by one convolution, a class token, learned positions, pre-norm blocks with
// nn.MultiheadAttention (sequence first inside, one copy of query, key and value), exact gelu, a
// classifier on the class token. Parameters have torchvision's order, and names of their layers.
// Its classifier starts at zero, where gradients of all the rest are zero: here it is drawn.
// Layers: `embed`, `layers.N` with `layers.N.attn` and `layers.N.mlp` inside (each with its norm),
// `head`, `loss`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/models/image_batch.h"
#include "executor/models/option_reader.h"
#include "executor/models/parameter_set.h"

namespace stowage::executor {

struct VitConfig {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t mlp = 3072;
  std::int64_t patch = 16;
  bool efficient_attention = true;  // else explicit scale, matmul, softmax, matmul
  ImageTask task;

  // Patches and the class token.
  [[nodiscard]] std::int64_t tokens() const;
  // As they stand in a spec.
  [[nodiscard]] std::map<std::string, std::string> options() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  // Parameters, gradients and residual stream: what a step needs at least.
  [[nodiscard]] double floor_bytes() const;
};

[[nodiscard]] ModelInfo vit_info();
[[nodiscard]] VitConfig read_vit(OptionReader& reader, std::int64_t batch);

class Vit final : public Model {
 public:
  Vit(const VitConfig& config, c10::Device device, at::ScalarType dtype, std::int64_t seed);

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return batch_.inputs(); }
  void load_batch(std::int64_t seed) override { batch_.load(seed); }
  BackwardRoot forward() override;

 private:
  struct Block {
    std::string path;
    Affine norm1, qkv, projection, norm2, up, down;
  };

  [[nodiscard]] at::Tensor embed(const at::Tensor& images) const;
  [[nodiscard]] at::Tensor attention(const Block& block, const at::Tensor& x) const;
  // [tokens * batch, width], of three tensors [tokens, batch, width].
  [[nodiscard]] at::Tensor attend(at::Tensor query, at::Tensor key, at::Tensor value) const;
  [[nodiscard]] at::Tensor block(const Block& block, const at::Tensor& x) const;

  // Targets: undefined without cross entropy.
  [[nodiscard]] BackwardRoot forward_of(const at::Tensor& images, const at::Tensor& targets) const;

  VitConfig config_;
  at::Tensor class_token_;  // [1, 1, width]
  Affine patches_;          // the convolution: [width, 3, patch, patch]
  at::Tensor positions_;    // [1, tokens, width]
  std::vector<Block> blocks_;
  Affine last_norm_;
  Affine classifier_;
  std::vector<NamedTensor> parameters_;
  ImageBatch batch_;
};

}  // namespace stowage::executor
