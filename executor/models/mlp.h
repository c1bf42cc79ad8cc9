// A stack of two-layer perceptrons, layer i: linear(width -> hidden), gelu, linear(hidden ->
// width), then a loss: against the batch's targets, or the plain mean of the output. The plainest
// model whose saved tensors are worth moving: layers `layers.N` and `loss`, about 4 * batch *
// (width + 2 * hidden) saved bytes a layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/models/option_reader.h"

namespace stowage::executor {

enum class MlpLoss : std::uint8_t { mse, cross_entropy, mean };

struct MlpConfig {
  std::int64_t layers = 6;
  std::int64_t width = 1024;
  std::int64_t hidden = 4096;
  std::int64_t batch = 64;
  MlpLoss loss = MlpLoss::mse;

  // As they stand in a spec.
  [[nodiscard]] std::map<std::string, std::string> options() const;
  // Parameters, gradients and saved tensors: what a step needs at least.
  [[nodiscard]] double floor_bytes() const;
};

[[nodiscard]] ModelInfo mlp_info();
[[nodiscard]] MlpConfig read_mlp(OptionReader& reader, std::int64_t batch);

class Mlp final : public Model {
 public:
  Mlp(const MlpConfig& config, c10::Device device, at::ScalarType dtype, std::int64_t seed);

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override;
  void load_batch(std::int64_t seed) override;
  BackwardRoot forward() override;

 private:
  struct Block {
    std::string path;
    at::Tensor up_weight, up_bias, down_weight, down_bias;
  };

  // Targets: undefined for the mean of the output.
  [[nodiscard]] BackwardRoot forward_of(const at::Tensor& input, const at::Tensor& targets) const;

  MlpConfig config_;
  std::vector<Block> blocks_;
  std::vector<NamedTensor> parameters_;
  at::Tensor input_;    // [batch, width]
  at::Tensor targets_;  // [batch, width], class numbers [batch], or none
};

}  // namespace stowage::executor
