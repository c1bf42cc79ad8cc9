#include "executor/backward_watch.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <thread>
#include <utility>

namespace stowage::executor {

namespace {

using torch::autograd::FunctionPreHook;
using torch::autograd::variable_list;

class TaskHook final : public FunctionPreHook {
 public:
  explicit TaskHook(std::weak_ptr<const int> task) : task_(std::move(task)) {}

  variable_list operator()(const variable_list& gradients) override {
    if (std::shared_ptr<const int> task = task_.lock()) {
      task_.reset();  // another backward through the same node is not this one
      torch::autograd::Engine::get_default_engine().queue_callback([task = std::move(task)] {});
    }
    return gradients;
  }

 private:
  std::weak_ptr<const int> task_;
};

}  // namespace

BackwardWatch::BackwardWatch(const std::vector<at::Tensor>& roots)
    : task_(std::make_shared<const int>(0)) {
  for (const at::Tensor& root : roots) {
    if (!root.defined() || !root.requires_grad()) continue;
    root_ = torch::autograd::impl::gradient_edge(root).function;
    auto hook = std::make_unique<TaskHook>(task_);
    hook_ = hook.get();
    root_->add_pre_hook(std::move(hook));
    return;
  }
}

void BackwardWatch::wait() {
  while (task_.use_count() > 1) std::this_thread::yield();
  if (root_ != nullptr) {
    std::erase_if(root_->pre_hooks(), [&](const auto& hook) { return hook.get() == hook_; });
  }
  root_.reset();
}

}  // namespace stowage::executor
