// The tail of a step, head and loss, in parts (docs/cookbook/parted-tail.md).
//
//   build/release/bin/examples/parted_tail
#include <stowage/layer.h>

#include "examples/cookbook/cookbook.h"

namespace {

using stowage::executor::BackwardRoot;

constexpr int kRows = 256;
constexpr int kVocabulary = 4096;
constexpr const char* kOnlyInParts = R"({
  "schema": "stowage-plan/1",
  "micro_batches": [{ "segment": "head", "count": 4 }]
})";

struct Net : torch::nn::Module {
  torch::nn::Embedding words = register_module("words", torch::nn::Embedding(kVocabulary, 64));
  torch::nn::Linear up = register_module("up", torch::nn::Linear(64, 256));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(256, 64));

  BackwardRoot forward(const torch::Tensor& ids) {
    torch::Tensor x =
        stowage::layer("words", [this](const auto& in) { return words(in[0]); }, {ids});
    x = stowage::layer(
        "block", [this](const auto& in) { return in[0] + down(torch::gelu(up(in[0]))); }, {x});
    // A callable from the head on to the loss, which a plan may run for one part of the rows after
    // the other.
    return stowage::tail(
        "head",
        [this](std::vector<torch::Tensor> in) -> BackwardRoot {
          const torch::Tensor logits = stowage::layer(
              "head", [this](const auto& of) { return torch::matmul(of[0], words->weight.t()); },
              {in[0]});
          return {
              stowage::layer("loss",
                             [](const auto& of) { return torch::cross_entropy_loss(of[0], of[1]); },
                             {logits, in[1]}),
              {}};
        },
        {x, ids});
  }
};

}  // namespace

int main() {
  stowage::executor::Device& device = cookbook::cpu();
  const auto net = std::make_shared<Net>();
  const torch::Tensor ids = torch::empty({kRows}, torch::kLong);
  cookbook::Program program{net,
                            [&](std::int64_t k) {
                              torch::manual_seed(static_cast<std::uint64_t>(k));
                              torch::Tensor(ids).random_(0, kVocabulary);
                            },
                            [&] {
                              const BackwardRoot root = net->forward(ids);
                              root.tensor.backward(root.gradient);
                              cookbook::sgd(net->parameters(), 0.1);
                              return root.tensor.item<float>();
                            },
                            {{"ids", ids}}};
  const auto trace = cookbook::record(device, program, {{"head", 4}});
  program.reset();
  const cookbook::Ran at_once = cookbook::run(device, program, nullptr);
  std::printf("tail at once: peak %.2f MB\n", static_cast<double>(at_once.peak) / 1e6);

  // In parts the sums have another order: what a plan is compared with is the step in parts.
  program.reset();
  const auto in_parts = cookbook::check(stowage::simulator::plan_from_json(kOnlyInParts, "plan"));
  cookbook::Ran plain;
  {
    const auto training = cookbook::apply(device, program, trace, in_parts);
    plain = cookbook::run(device, program, training.get());
  }
  program.reset();
  stowage::planner::PlanRequest request;
  request.budget = trace->peaks.requested.front() * 80 / 100;
  const auto outcome =
      cookbook::check(stowage::planner::make_plan(stowage::simulator::StepIndex(*trace), request));
  const auto training = cookbook::apply(device, program, trace, outcome.plan);
  const cookbook::Ran planned = cookbook::run(device, program, training.get());
  const int code = cookbook::tell(plain, planned, training->predicted().peak_requested);
  return plain.peak < at_once.peak ? code : 1;
}
