#include "executor/saved_tensor_engine.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>

#include <memory>

#include "executor/step_driver.h"

namespace stowage::executor {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;
using torch::autograd::variable_list;

class SavedTensorEngine final : public Engine {
 public:
  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph,
                        bool create_graph, bool accumulate_grad,
                        const edge_list& outputs) override {
    // The driver cannot change during backward (set_driver is for between steps only).
    StepDriver* const current = driver();
    if (current == nullptr) {
      return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    }
    current->backward_begin();
    variable_list result =
        Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    current->backward_end();
    return result;
  }

  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    StepDriver* const current = driver();
    return current == nullptr ? nullptr : current->make_hooks();
  }
};

Engine& engine() {
  static SavedTensorEngine* const leaked = new SavedTensorEngine;
  return *leaked;
}

// Before main(): an engine that comes when another one has run a backward on a GPU has no threads
// for that device.
[[maybe_unused]] const bool g_installed = [] {
  torch::autograd::set_default_engine_stub(&engine);
  return true;
}();

}  // namespace

void install_saved_tensor_engine() {
  TORCH_CHECK(&Engine::get_default_engine() == &engine(),
              "stowage: another autograd engine was installed in this process (Python's?); saved "
              "tensors cannot be seen there");
}

}  // namespace stowage::executor
