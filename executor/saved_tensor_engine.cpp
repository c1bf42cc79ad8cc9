#include "executor/saved_tensor_engine.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/input_buffer.h>

#include <cstring>
#include <memory>
#include <thread>
#include <typeinfo>
#include <utility>

#include "executor/step_driver.h"

namespace stowage::executor {

namespace {

using torch::autograd::AnomalyMetadata;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::SavedVariableHooks;
using torch::autograd::variable_list;

// The last one to hold the task of an execute(). On a GPU autograd's thread wakes the caller first
// and lets go of the task, with gradients in it, afterwards; their memory would then be freed at
// any time. Its destructor waits for that thread (some instructions away) and frees them here.
class TaskHolder {
 public:
  TaskHolder() : outer_(std::exchange(innermost(), this)) {}
  ~TaskHolder() {
    innermost() = outer_;
    while (task_ != nullptr && task_.use_count() > 1) std::this_thread::yield();
  }
  TaskHolder(const TaskHolder&) = delete;
  TaskHolder& operator=(const TaskHolder&) = delete;

  // Of the execute() that runs on this thread; null outside of one.
  static TaskHolder*& innermost() {
    thread_local TaskHolder* holder = nullptr;
    return holder;
  }
  void hold(std::shared_ptr<GraphTask> task) { task_ = std::move(task); }

 private:
  TaskHolder* outer_;
  std::shared_ptr<GraphTask> task_;
};

// Where the process has Python's engine, work is that one's: its threads know the GIL, and the
// user's own saved-tensor hooks and anomaly mode are its answers.
class SavedTensorEngine final : public Engine {
 public:
  // `other` was the process's default engine before; null where that is PyTorch's plain one.
  explicit SavedTensorEngine(Engine* other) : other_(other) {}

  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph,
                        bool create_graph, bool accumulate_grad,
                        const edge_list& outputs) override {
    const std::shared_ptr<const DriverLink> link = driver_link();
    if (StepDriver* const current = driver_of(link.get())) current->backward_begin();
    variable_list result;
    {
      const TaskHolder holder;
      result = Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    }
    if (StepDriver* const current = driver_of(link.get())) current->backward_end();
    return result;
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<GraphTask>& task, std::shared_ptr<Node> root,
      InputBuffer&& input) override {
    if (TaskHolder* const holder = TaskHolder::innermost()) holder->hold(task);
    if (other_ != nullptr) {
      return other_->execute_with_graph_task(task, std::move(root), std::move(input));
    }
    return Engine::execute_with_graph_task(task, std::move(root), std::move(input));
  }

  std::unique_ptr<AnomalyMetadata> make_anomaly_metadata() override {
    return other_ != nullptr ? other_->make_anomaly_metadata() : Engine::make_anomaly_metadata();
  }

  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (other_ != nullptr) {
      if (auto hooks = other_->get_default_saved_variable_hooks()) return hooks;
    }
    StepDriver* const current = driver();
    return current == nullptr ? nullptr : current->make_hooks();
  }

 private:
  Engine* other_;
};

Engine* g_other = nullptr;  // set once, before engine() is called

Engine& engine() {
  static SavedTensorEngine* const leaked = new SavedTensorEngine(g_other);
  return *leaked;
}

// A plugin may have brought a copy of this file along, which is another type to the linker. Both
// ask LibTorch for the thread's driver, so one does for all.
bool is_ours(const Engine& other) {
  return std::strcmp(typeid(other).name(), typeid(SavedTensorEngine).name()) == 0;
}

// Before main(): an engine that comes when another one has run a backward on a GPU has no threads
// for that device.
[[maybe_unused]] const bool g_installed = [] {
  Engine& before = Engine::get_default_engine();
  if (is_ours(before)) return true;
  if (typeid(before) != typeid(Engine)) g_other = &before;
  torch::autograd::set_default_engine_stub(&engine);
  return true;
}();

}  // namespace

void install_saved_tensor_engine() {
  TORCH_CHECK(
      is_ours(Engine::get_default_engine()),
      "stowage: another autograd engine was installed in this process behind Stowage's; saved "
      "tensors cannot be seen there");
}

}  // namespace stowage::executor
