// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel computes it, except that the
// targets are a tensor of their own instead of the shifted tokens, so that no logits are copied.
// Pre-norm blocks, one linear for query, key and value, gelu with tanh, head tied to the token
// embedding. Layers: `embed`, `layers.N` with `layers.N.attn` and `layers.N.mlp` inside, `head`,
// `loss`. The logits die inside `loss`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/models/option_reader.h"
#include "executor/models/parameter_set.h"
#include "executor/models/token_batch.h"

namespace stowage::executor {

struct Gpt2Config {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t seq = 1024;
  std::int64_t vocab = 50257;
  std::int64_t batch = 4;
  bool tied = true;
  bool efficient_attention = false;  // else explicit matmul, scale, mask, softmax, matmul
  double dropout = 0;
  bool text = false;  // else tokens are drawn

  // As they stand in a spec.
  [[nodiscard]] std::map<std::string, std::string> options() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  // Parameters, gradients, residual stream and three tensors of logits: what a step needs at least.
  [[nodiscard]] double floor_bytes() const;
};

[[nodiscard]] ModelInfo gpt2_info();
[[nodiscard]] Gpt2Config read_gpt2(OptionReader& reader, std::int64_t batch);

class Gpt2 final : public Model {
 public:
  Gpt2(const Gpt2Config& config, c10::Device device, at::ScalarType dtype, std::int64_t seed);

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override;
  [[nodiscard]] std::vector<NamedTensor> inputs() const override;
  void load_batch(std::int64_t seed) override;
  BackwardRoot forward() override;

 private:
  struct Block {
    std::string path;
    Affine norm1, qkv, projection, norm2, up, down;
  };

  [[nodiscard]] at::Tensor embed(const at::Tensor& tokens) const;
  [[nodiscard]] at::Tensor block(const Block& block, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor attention(const Block& block, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor attend(at::Tensor query, at::Tensor key, at::Tensor value) const;
  [[nodiscard]] at::Tensor mlp(const Block& block, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor loss(const at::Tensor& logits, const at::Tensor& targets) const;
  [[nodiscard]] BackwardRoot head(at::Tensor x, const at::Tensor& targets) const;
  [[nodiscard]] BackwardRoot forward_of(const at::Tensor& tokens, const at::Tensor& targets) const;
  [[nodiscard]] at::Tensor drop(at::Tensor x) const;

  Gpt2Config config_;
  at::Tensor tokens_weight_;     // [vocab, width]
  at::Tensor positions_weight_;  // [seq, width]
  std::vector<Block> blocks_;
  Affine last_norm_;
  at::Tensor head_weight_;  // the token embedding when tied
  std::vector<NamedTensor> parameters_;
  at::Tensor positions_;             // 0, 1, .. seq - 1
  at::Tensor mask_;                  // [seq, seq], true above the diagonal; only for math attention
  std::optional<TokenBatch> batch_;  // made last
};

}  // namespace stowage::executor
