// BackwardWatch: when autograd's threads have let go of a backward that does not go through our
// engine (Python's loss.backward() calls its own). On a GPU they wake the caller first and let go
// of the task, with gradients in it, afterwards; their memory would then be freed at any time. (Our
// own engine holds the task itself, executor/saved_tensor_engine.cpp.)
//
//   BackwardWatch watch(roots);  .. the engine runs ..  watch.wait();
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <vector>

namespace stowage::executor {

class BackwardWatch {
 public:
  // Ahead of the engine's call for these roots: the first of them that has a gradient gets a hook,
  // which puts a callback into the engine's task, and that lives as long as the task.
  explicit BackwardWatch(const std::vector<at::Tensor>& roots);
  BackwardWatch(BackwardWatch&&) noexcept = default;

  // Behind the call, if that did not throw; once. Some instructions as a rule. What autograd's
  // threads drop meanwhile may need Python's lock: do not hold it.
  void wait();

 private:
  std::shared_ptr<torch::autograd::Node> root_;
  std::shared_ptr<const int> task_;  // held by the hook's callback as well
  const void* hook_ = nullptr;       // of root_
};

}  // namespace stowage::executor
