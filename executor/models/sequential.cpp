#include "executor/models/sequential.h"

#include <c10/util/Exception.h>

#include <utility>

#include "executor/layer.h"
#include "executor/models/consume.h"

namespace stowage::executor {

namespace {

class SequentialModel final : public Model {
 public:
  SequentialModel(torch::nn::Sequential network, SequentialTask task)
      : network_(std::move(network)), task_(std::move(task)) {
    TORCH_CHECK(!task_.inputs.empty() && task_.load_batch && task_.loss,
                "a SequentialTask needs an input, load_batch and loss");
    // Once: an attribution step asks for no gradient of any.
    for (const auto& each : network_->named_parameters()) {
      (each.value().requires_grad() ? parameters_ : buffers_).push_back({each.key(), each.value()});
    }
  }

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override {
    std::vector<NamedTensor> all;
    for (const auto& each : network_->named_buffers()) all.push_back({each.key(), each.value()});
    all.insert(all.end(), buffers_.begin(), buffers_.end());
    return all;
  }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return task_.inputs; }
  void load_batch(std::int64_t seed) override { task_.load_batch(seed); }
  BackwardRoot forward() override {
    at::Tensor output = forward_layers(*network_, task_.inputs.front().tensor);
    at::Tensor loss = layer(
        "loss", [this](const std::vector<at::Tensor>& in) { return task_.loss(in[0]); },
        consume(output));
    return {.tensor = std::move(loss), .gradient = {}};
  }

 private:
  torch::nn::Sequential network_;
  SequentialTask task_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;  // parameters that are not trained
};

}  // namespace

at::Tensor forward_layers(torch::nn::SequentialImpl& network, at::Tensor input) {
  const auto names = network.named_children();
  std::size_t i = 0;
  for (torch::nn::AnyModule& module : network) {
    input = layer(
        names[i++].key(),
        [module](const std::vector<at::Tensor>& in) mutable { return module.forward(in[0]); },
        consume(input));
  }
  return input;
}

std::unique_ptr<Model> sequential_model(torch::nn::Sequential network, SequentialTask task) {
  return std::make_unique<SequentialModel>(std::move(network), std::move(task));
}

}  // namespace stowage::executor
