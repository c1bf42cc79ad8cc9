// BackwardTask beside an engine that lets go of its task late.
#include "executor/backward_task.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/input_buffer.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace stowage::executor {
namespace {

using torch::autograd::impl::gradient_edge;

// Keeps the task of its last backward, as a thread of autograd's does for some instructions.
class HoldingEngine final : public torch::autograd::Engine {
 public:
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
      std::shared_ptr<torch::autograd::Node> root, torch::autograd::InputBuffer&& input) override {
    task = graph_task;
    return Engine::execute_with_graph_task(graph_task, std::move(root), std::move(input));
  }
  void backward(const at::Tensor& root) {
    execute({gradient_edge(root)}, {at::ones_like(root)}, /*keep_graph=*/true,
            /*create_graph=*/false, /*accumulate_grad=*/true, {});
  }

  std::shared_ptr<torch::autograd::GraphTask> task;
};

at::Tensor parameter() {
  return at::ones({4}).requires_grad_();
}

std::size_t hooks_of(const at::Tensor& root) {
  return gradient_edge(root).function->pre_hooks().size();
}

TEST(BackwardTask, IsWaitedForUntilItIsGone) {
  const at::Tensor weight = parameter();
  const at::Tensor root = (weight * weight).sum();
  HoldingEngine engine;
  BackwardTask task({root});
  EXPECT_EQ(hooks_of(root), 1U);
  engine.backward(root);
  std::atomic<bool> is_let_go = false;
  std::atomic<bool> was_let_go = false;
  std::atomic<bool> waits = false;
  std::thread waiting([&] {
    waits = true;
    task.wait();
    was_let_go = is_let_go.load();
  });
  while (!waits) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  is_let_go = true;
  engine.task.reset();
  waiting.join();
  EXPECT_TRUE(was_let_go);
  EXPECT_EQ(hooks_of(root), 0U);
}

TEST(BackwardTask, OfEachRootIsHeardAndLeavesNothing) {
  const at::Tensor weight = parameter();
  const at::Tensor first = (weight * 2).sum();
  const at::Tensor second = (weight * 3).sum();
  HoldingEngine engine;
  for (int backward = 0; backward < 2; ++backward) {  // the graph is kept
    BackwardTask task({at::Tensor(), at::ones({1}), first, weight, second});
    engine.backward(second);  // the others do not run
    engine.task.reset();
    task.wait();
    EXPECT_EQ(hooks_of(first) + hooks_of(second) + hooks_of(weight), 0U);
  }
  EXPECT_EQ(weight.grad().sum().item<float>(), 2 * 3 * 4.0F);
}

}  // namespace
}  // namespace stowage::executor
