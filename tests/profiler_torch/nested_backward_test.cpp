// Backwards within backwards, as checkpointing of the user's own has them (torch.utils.checkpoint's
// re-entrant way): more of them within each other than autograd runs on one thread (60), and with
// final callbacks of the inner ones.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/layer.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::input;
using testing::parameter;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// A chain of products, each level of which saves nothing in forward and runs again in a backward of
// its own, the next level within it.
struct Chain {
  std::vector<at::Tensor> weights;
  int callbacks = 0;
  std::set<std::thread::id> threads{};  // of the backwards within

  at::Tensor level(std::size_t number, const at::Tensor& x);
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, Chain* chain,
                          std::int64_t number) {
    context->save_for_backward({x});
    context->saved_data["chain"] = reinterpret_cast<std::int64_t>(chain);
    context->saved_data["number"] = number;
    return chain->level(static_cast<std::size_t>(number), x.detach()).detach();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto* const chain = reinterpret_cast<Chain*>(context->saved_data["chain"].toInt());
    const auto number = static_cast<std::size_t>(context->saved_data["number"].toInt());
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const at::AutoGradMode with_grad(true);
    const at::Tensor again = chain->level(number, x);
    chain->threads.insert(std::this_thread::get_id());
    again.register_hook([chain](const at::Tensor& gradient) {
      torch::autograd::Engine::get_default_engine().queue_callback([chain] { ++chain->callbacks; });
      return gradient;
    });
    again.backward(gradients[0]);
    return {x.grad(), Variable(), Variable()};
  }
};

at::Tensor Chain::level(std::size_t number, const at::Tensor& x) {
  const at::Tensor y = (x * weights[number]).tanh();
  if (number + 1 == weights.size()) return y;
  return Checkpoint::apply(y, this, static_cast<std::int64_t>(number + 1)).sin();
}

TEST(NestedBackward, DeeperThanOneThreadRunsThem) {
  constexpr std::size_t kLevels = 70;
  Chain chain;
  for (std::size_t i = 0; i < kLevels; ++i) chain.weights.push_back(parameter({6}));
  const at::Tensor x = input({3, 6});
  const TensorFn all = [&](const std::vector<at::Tensor>& in) { return chain.level(0, in[0]); };
  HandStep step(chain.weights, {x}, [&] {
    chain.callbacks = 0;
    chain.threads.clear();
    const double loss = backward(layer("chain", all, {x * 2}).sum());
    // Each backward within another has its own, which is called when that one is over.
    EXPECT_EQ(chain.callbacks, static_cast<int>(kLevels) - 1);
    return loss;
  });
  EXPECT_GT(chain.threads.size(), 1U) << "no thread of autograd's own took over";
  EXPECT_GE(step.trace().unpacks.size(), kLevels);
  testing::expect_exact_in_every_style(step);
}

}  // namespace
}  // namespace stowage
