// A model in shards, with micro-batches, mixed precision and boundary checkpoints
// (docs/cookbook/shards.md).
//
//   build/release/bin/examples/shards
#include <ATen/autocast_mode.h>
#include <stowage/layer.h>

#include "examples/cookbook/cookbook.h"

namespace {

constexpr int kBlocks = 6;
constexpr int kParts = 2;
constexpr int kRows = 256;  // of a micro-batch
// Two blocks a shard: here while they are used in forward, in backward and by the update. Each
// block runs again in backward; what it was given waits on the host.
constexpr const char* kPlan = R"({
  "schema": "stowage-plan/1",
  "parameters": { "shards": [["blocks.[0-1]"], ["blocks.[2-3]"], ["blocks.[4-5]"]], "stream": true, "prefetch": 1 },
  "recompute": [{ "segment": "blocks.[0-5]", "boundary": "offload" }]
})";

// As torch.autocast("cpu", dtype=torch.bfloat16) is.
class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

struct Net : torch::nn::Module {
  std::vector<torch::nn::Linear> up;
  std::vector<torch::nn::Linear> down;
  torch::nn::Linear head = register_module("head", torch::nn::Linear(64, 10));

  Net() {
    for (int i = 0; i < kBlocks; ++i) {
      up.push_back(register_module("up" + std::to_string(i), torch::nn::Linear(64, 256)));
      down.push_back(register_module("down" + std::to_string(i), torch::nn::Linear(256, 64)));
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < up.size(); ++i) {
      x = stowage::layer(
          "blocks." + std::to_string(i),
          [this, i](const auto& in) { return in[0] + down[i](torch::gelu(up[i](in[0]))); }, {x});
    }
    return stowage::layer("head", [this](const auto& in) { return head(in[0]); }, {x});
  }
};

}  // namespace

int main() {
  stowage::executor::Device& device = cookbook::cpu();
  const auto net = std::make_shared<Net>();
  const torch::Tensor x = torch::empty({kParts * kRows, 64});
  const torch::Tensor y = torch::empty({kParts * kRows}, torch::kLong);
  cookbook::Program program{
      net,
      [&](std::int64_t k) {
        torch::manual_seed(static_cast<std::uint64_t>(k));
        torch::Tensor(x).normal_();
        torch::Tensor(y).random_(0, 10);
      },
      [&] {
        float sum = 0;
        for (int part = 0; part < kParts; ++part) {
          torch::Tensor loss;
          {
            const Autocast autocast;
            const torch::Tensor logits = net->forward(x.narrow(0, part * kRows, kRows));
            loss = torch::cross_entropy_loss(logits, y.narrow(0, part * kRows, kRows)) / kParts;
          }
          loss.backward();
          sum += loss.item<float>();
        }
        cookbook::sgd(net->parameters(), 0.1);
        return sum;
      },
      {{"x", x}, {"y", y}}};
  const auto trace = cookbook::record(device, program);
  program.reset();
  const cookbook::Ran plain = cookbook::run(device, program, nullptr);
  program.reset();
  const auto plan = cookbook::check(stowage::simulator::plan_from_json(kPlan, "plan"));
  const auto training = cookbook::apply(device, program, trace, plan);
  const cookbook::Ran planned = cookbook::run(device, program, training.get());
  return cookbook::tell(plain, planned, training->predicted().peak_requested);
}
