// Llama 3 (Grattafiori et al. 2024) as Hugging Face's LlamaForCausalLM computes it (transformers
// 5.23, use_cache=False, sdpa), op for op and with the same tensors alive: RMSNorm in float32,
// rotary embedding, grouped-query attention, SiLU gate, no biases, untied head on all positions.
// Left out are transformers' checks for packed sequences, which launch a few tiny integer ops. The
// targets of cross entropy are a tensor of their own instead of the shifted tokens. Layers:
// `embed`, `layers.N` with `layers.N.attn` and `layers.N.mlp` inside (each with its norm), `head`,
// and `loss` with loss=cross-entropy. Between `embed` and the blocks the cosines and sines are
// computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/models/option_reader.h"
#include "executor/models/token_batch.h"

namespace stowage::executor {

struct Llama3Config {
  std::int64_t layers = 32;
  std::int64_t width = 4096;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t hidden = 14336;
  std::int64_t seq = 1024;
  std::int64_t vocab = 128256;
  std::int64_t batch = 8;
  // Keys and values are repeated for their query heads before the attention, which then takes
  // kernels that know no groups. Else PyTorch gets the groups, and in fp32 on a GPU only its math
  // kernel takes them: it keeps the attention matrices.
  bool efficient_attention = false;
  bool cross_entropy = false;  // else backward of the logits with ones
  bool text = false;           // else tokens are drawn; only for cross entropy

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
  // As they stand in a spec.
  [[nodiscard]] std::map<std::string, std::string> options() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  // Parameters, gradients, residual stream and two (cross entropy: three) tensors of logits: what a
  // step needs at least.
  [[nodiscard]] double floor_bytes() const;
};

[[nodiscard]] ModelInfo llama3_info();
[[nodiscard]] Llama3Config read_llama3(OptionReader& reader, std::int64_t batch);

class Llama3 final : public Model {
 public:
  Llama3(const Llama3Config& config, c10::Device device, at::ScalarType dtype, std::int64_t seed);

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override;
  [[nodiscard]] std::vector<NamedTensor> inputs() const override;
  void load_batch(std::int64_t seed) override;
  BackwardRoot forward() override;

 private:
  struct Block {
    std::string path;
    at::Tensor norm1, q, k, v, o, norm2, gate, up, down;  // weights
  };
  struct Rotary {
    at::Tensor cos, sin;  // [1, seq, head width], in the model's dtype
  };

  [[nodiscard]] Rotary rotary() const;
  [[nodiscard]] at::Tensor block(const Block& block, const at::Tensor& x, const Rotary& turn) const;
  [[nodiscard]] at::Tensor attention(const Block& block, const at::Tensor& x,
                                     const Rotary& turn) const;
  [[nodiscard]] at::Tensor attend(const at::Tensor& query, at::Tensor key, at::Tensor value) const;

  [[nodiscard]] BackwardRoot head(at::Tensor x, const at::Tensor& targets) const;
  // Targets: undefined without cross entropy.
  [[nodiscard]] BackwardRoot forward_of(const at::Tensor& tokens, const at::Tensor& targets) const;

  Llama3Config config_;
  at::ScalarType dtype_;
  at::Tensor tokens_weight_;  // [vocab, width]
  std::vector<Block> blocks_;
  at::Tensor last_norm_;
  at::Tensor head_weight_;  // [vocab, width]
  std::vector<NamedTensor> parameters_;
  at::Tensor inverse_frequencies_;   // [head width / 2], float32
  std::optional<TokenBatch> batch_;  // made last; targets only for cross entropy
};

}  // namespace stowage::executor
