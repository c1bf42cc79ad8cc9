#include "executor/backward_task.h"

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

BackwardTask::BackwardTask(const std::vector<at::Tensor>& roots)
    : task_(std::make_shared<const int>(0)) {
  for (const at::Tensor& root : roots) {
    if (!root.defined() || !root.requires_grad()) continue;
    auto hook = std::make_unique<TaskHook>(task_);
    hooked_.push_back({torch::autograd::impl::gradient_edge(root).function, hook.get()});
    hooked_.back().root->add_pre_hook(std::move(hook));
  }
}

void BackwardTask::wait() {
  while (task_.use_count() > 1) std::this_thread::yield();
  for (const Hooked& each : hooked_) {
    std::erase_if(each.root->pre_hooks(),
                  [&](const auto& hook) { return hook.get() == each.hook; });
  }
  hooked_.clear();
}

}  // namespace stowage::executor
