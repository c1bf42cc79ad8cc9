// The one place where a running step talks to whoever observes or plans it. Layers, the
// saved-tensor engine and the training step report here; a recording driver logs, a planned driver
// moves tensors. No driver = a plain step.
//
// The driver is process-wide, not thread-local: on a GPU, backward runs on autograd's own threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace stowage::executor {

enum class LayerEvent : std::uint8_t { forward_begin, forward_end, backward_begin, backward_end };
enum class UpdateEvent : std::uint8_t { begin, end };

class StepDriver {
 public:
  virtual ~StepDriver() = default;

  // Hooks for one saved tensor, or null for PyTorch's own saving. Called on the thread that saves.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() = 0;
  // `path` is the layer's full path and stays valid only during the call.
  virtual void layer_event(LayerEvent event, std::string_view path) = 0;
  // Around every call of the autograd engine. Between two of them, and after the last, no thread of
  // autograd's runs or frees anything of the step.
  virtual void backward_begin() = 0;
  virtual void backward_end() = 0;
  // Around the optimizer's update of one parameter that has a gradient. After an exception inside
  // there is no end.
  virtual void parameter_update(UpdateEvent event, const at::Tensor& parameter) = 0;
};

// The current driver or null. set_driver() replaces it; the caller keeps ownership and must reset
// it to null before the driver dies. Only between steps.
[[nodiscard]] StepDriver* driver();
void set_driver(StepDriver* driver);

// A plugin (executor/plugin.h) is linked against this library for itself, so it has a copy of this
// file. With the program's driver() as its source, the copy's driver() answers what the program's
// does. Giving a copy its own driver() changes nothing: so it is where the program exports its
// symbols and there is no second copy.
using DriverSource = StepDriver* (*)();
void set_driver_source(DriverSource source);

}  // namespace stowage::executor
