// BackwardTask: when autograd's threads have let go of a backward that does not go through our
// engine (Python's loss.backward() calls its own). On a GPU they wake the caller first and let go
// of the task, with gradients in it, afterwards; their memory would then be freed at any time. (Our
// own engine holds the task itself, executor/saved_tensor_engine.cpp.)
//
//   BackwardTask task(roots);  .. the engine runs ..  task.wait();
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <vector>

namespace stowage::executor {

class BackwardTask {
 public:
  // Ahead of the engine's call for these roots: each that has a gradient gets a hook, which puts a
  // callback into the engine's task, and that lives as long as the task. Where none of them runs
  // (an edge of the graph as the only root) it is not waited for.
  explicit BackwardTask(const std::vector<at::Tensor>& roots);
  BackwardTask(BackwardTask&&) noexcept = default;

  // Behind the call, if that did not throw; once. Some instructions as a rule. What autograd's
  // threads drop meanwhile may need Python's lock: do not hold it.
  void wait();

 private:
  struct Hooked {
    std::shared_ptr<torch::autograd::Node> root;
    const void* hook = nullptr;
  };
  std::vector<Hooked> hooked_;
  std::shared_ptr<const int> task_;  // held by the hooks' callbacks as well
};

}  // namespace stowage::executor
