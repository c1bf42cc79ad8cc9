// Gives a TorchScript module its layers: each call of a submodule runs inside stowage::layer under
// the submodule's dotted name. Calls are replaced in the methods' graphs, before they first run, by
// an operator of ours that runs the callee in an interpreter of its own; so loops, branches and
// everything else of the script stay as they are.
//
// A submodule is no layer of its own, and belongs to the one around it, when
// - it has no parameters (activations, dropout, pooling);
// - its result is neither a tensor nor a tuple that has one, or it is called through an interface;
// - a tensor that crosses the boundary is written in place right there (bn followed by relu_ or
// +=):
//   boundaries are views, and autograd copies the gradient of a view that is written.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <memory>

namespace stowage::executor {

class ScriptLayers {
 public:
  // Rewrites the methods of `module` and of everything below it, once; on another device than the
  // CPU also the devices and tensors that tracing wrote into them. Names are given until the
  // object dies; the module must not run after that.
  ScriptLayers(const torch::jit::Module& module, c10::Device device);
  ~ScriptLayers();
  ScriptLayers(const ScriptLayers&) = delete;
  ScriptLayers& operator=(const ScriptLayers&) = delete;

 private:
  torch::jit::Module module_;
};

// The first tensor in what a module returned: itself, or of the elements of a tuple, list or dict
// in their order. Undefined: there is none.
[[nodiscard]] at::Tensor first_tensor(const c10::IValue& value);

// While it lives the calling thread's scripts run op by op as they stand, without profiling,
// fusion or differentiation of their own, from the first call on; and exceptions pass through them
// as they were thrown.
class PlainScripts {
 public:
  PlainScripts();
  ~PlainScripts();
  PlainScripts(const PlainScripts&) = delete;
  PlainScripts& operator=(const PlainScripts&) = delete;

 private:
  bool optimized_;
  bool rethrew_;
};

}  // namespace stowage::executor
