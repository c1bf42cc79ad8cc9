// What the language models share: a batch of token sequences, as a rule with targets. They are
// drawn (which there is nothing to learn from) or windows of the fixed text, whose targets are the
// next byte.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "executor/model.h"

namespace stowage::executor {

struct TokenTask {
  std::int64_t batch = 1;
  std::int64_t seq = 1024;
  std::int64_t vocab = 1;  // of text: kTextTokens at least
  bool is_text = false;
  bool has_targets = true;
};

class TokenBatch {
 public:
  TokenBatch(const TokenTask& task, const at::TensorOptions& integers);

  [[nodiscard]] const at::Tensor& tokens() const { return tokens_; }
  [[nodiscard]] const at::Tensor& targets() const { return targets_; }  // undefined without
  [[nodiscard]] std::vector<NamedTensor> inputs() const;
  // Drawn tokens are drawn on the device. Windows begin anywhere in the text, which goes on with
  // its begin behind its end; the same seed gives the same ones on every device.
  void load(std::int64_t seed);

 private:
  void load_text(std::int64_t seed);

  TokenTask task_;
  at::Tensor tokens_;   // [batch, seq]
  at::Tensor targets_;  // [batch, seq]
};

}  // namespace stowage::executor
