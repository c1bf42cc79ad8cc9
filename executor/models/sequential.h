// Any torch::nn::Sequential as a model. Every module in it is a layer under its registered name
// ("0", "1", ..).
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/model.h"

namespace stowage::executor {

struct SequentialTask {
  // The first is what the network gets. On its device, made once.
  std::vector<NamedTensor> inputs;
  // Writes batch `seed` into the inputs, in place.
  std::function<void(std::int64_t seed)> load_batch;
  // A scalar of the network's output; runs as the layer "loss".
  std::function<at::Tensor(const at::Tensor& output)> loss;
};

// Runs the network layer by layer; each module takes a tensor and returns one, and the tensors
// between them die when their last use is over. For a model of one's own, a plugin's or a loop's.
[[nodiscard]] at::Tensor forward_layers(torch::nn::SequentialImpl& network, at::Tensor input);

// Parameters that need no gradient are left out. Both functions of the task are needed.
[[nodiscard]] std::unique_ptr<Model> sequential_model(torch::nn::Sequential network,
                                                      SequentialTask task);

}  // namespace stowage::executor
