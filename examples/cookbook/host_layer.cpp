// A layer whose weights live on the host (docs/cookbook/host-layer.md).
//
//   build/release/bin/examples/host_layer
#include <stowage/layer.h>

#include "examples/cookbook/cookbook.h"

namespace {

// On the device while they are used, no longer.
constexpr const char* kPlan = R"({
  "schema": "stowage-plan/1",
  "parameters": { "shards": [["wide"]], "stream": true }
})";

struct Net : torch::nn::Module {
  torch::nn::Linear up = register_module("up", torch::nn::Linear(64, 64));
  torch::nn::Linear widen = register_module("widen", torch::nn::Linear(64, 8192));
  torch::nn::Linear narrow = register_module("narrow", torch::nn::Linear(8192, 64));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(64, 64));

  torch::Tensor forward(torch::Tensor x) {
    x = stowage::layer("up", [this](const auto& in) { return in[0] + up(in[0]).tanh(); }, {x});
    x = stowage::layer(
        "wide", [this](const auto& in) { return in[0] + narrow(torch::gelu(widen(in[0]))); }, {x});
    return stowage::layer("down", [this](const auto& in) { return in[0] + down(in[0]).tanh(); },
                          {x});
  }
};

}  // namespace

int main() {
  stowage::executor::Device& device = cookbook::cpu();
  const auto net = std::make_shared<Net>();
  const torch::Tensor x = torch::empty({32, 64});
  cookbook::Program program{net,
                            [&](std::int64_t k) {
                              torch::manual_seed(static_cast<std::uint64_t>(k));
                              torch::Tensor(x).normal_();
                            },
                            [&] {
                              const torch::Tensor loss = net->forward(x).square().mean();
                              loss.backward();
                              cookbook::sgd(net->parameters(), 0.1);
                              return loss.item<float>();
                            },
                            {{"x", x}}};
  const auto trace = cookbook::record(device, program);
  program.reset();
  const cookbook::Ran plain = cookbook::run(device, program, nullptr);
  program.reset();
  const auto plan = cookbook::check(stowage::simulator::plan_from_json(kPlan, "plan"));
  const auto training = cookbook::apply(device, program, trace, plan);
  const cookbook::Ran planned = cookbook::run(device, program, training.get());
  return cookbook::tell(plain, planned, training->predicted().peak_requested);
}
