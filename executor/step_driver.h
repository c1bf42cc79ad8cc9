// The one place where a running step talks to whoever observes or plans it. Layers, the
// saved-tensor engine and the training step report here; a recording driver logs, a planned driver
// moves tensors. No driver = a plain step.
//
// A driver is called on every thread that runs a part of its step: on a GPU, backward runs on
// autograd's own. It holds no lock while code of the user's runs, a kernel is launched or memory is
// asked for.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/device/step_memory.h"
#include "executor/layer_fn.h"
#include "executor/layer_side.h"

namespace at {
struct RecordFunction;
}

namespace stowage::executor {

enum class LayerEvent : std::uint8_t { forward_begin, forward_end, backward_begin, backward_end };
enum class UpdateEvent : std::uint8_t { begin, end };

class StepDriver {
 public:
  virtual ~StepDriver() = default;

  // Hooks for one saved tensor, or null for PyTorch's own saving. Called on the thread that saves.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() = 0;
  // Runs a layer's forward, between its two events: fn(inputs), whose result it returns. What it
  // keeps of `fn` it may call again until the step ends, from a hook as well; the inputs are
  // consumed: what is not kept is gone when fn returns.
  virtual std::vector<at::Tensor> run_layer(std::string_view path, const LayerFn& fn,
                                            std::vector<at::Tensor> inputs);
  // In how many parts of the batch the tail that begins with this layer runs (executor/tail.h);
  // none = the driver that this one was put in front of knows.
  [[nodiscard]] virtual std::optional<std::int32_t> parts(std::string_view /*segment*/) {
    return std::nullopt;
  }
  // `path` is the layer's full path and stays valid only during the call.
  virtual void layer_event(LayerEvent event, std::string_view path) = 0;
  // Around every call of the autograd engine. Between two of them, and after the last, no thread of
  // autograd's runs or frees anything of the step.
  virtual void backward_begin() = 0;
  virtual void backward_end() = 0;
  // Around the optimizer's update of one parameter that has a gradient. After an exception inside
  // there is no end.
  virtual void parameter_update(UpdateEvent event, const at::Tensor& parameter) = 0;
  // Whether this parameter's update is done elsewhere by the plan, so that the optimizer leaves it
  // out (without the two events above). An update in backward then leaves the gradient where it is:
  // the plan takes it, and drops it at the step's end.
  [[nodiscard]] virtual bool updates_elsewhere(const at::Tensor& /*parameter*/) { return false; }
  // In the place of all of them, when the step's gradients are of no use.
  virtual void skip_update() {}
  // Where what the step allocates lies; null: where the device's allocator puts it.
  [[nodiscard]] virtual StepMemory* memory() { return nullptr; }
  // Around each primitive op (Ops::primitive), while somebody watches (executor/op_watch.h), with
  // its arguments, then with its results. An exception would be lost.
  virtual void primitive_op_begin(const at::RecordFunction& /*op*/) {}
  virtual void primitive_op_end(const at::RecordFunction& /*op*/) {}
  // Of every layer, also when it runs again: what it is about to be given, and what it returned,
  // each ahead of any use. It may put equal tensors in their places
  // (executor/attributed_forward.h).
  virtual void layer_tensors(LayerSide /*side*/, std::string_view /*path*/,
                             std::vector<at::Tensor>& /*tensors*/) {}
};

// One installation of a driver, shared by all who may ask it later: threads, and graphs made under
// it. It answers null from the installation's removal on.
class DriverLink;

// Puts a driver in front of the calling thread's current one, until it is removed. Threads that run
// for this one with its state (autograd's, a fork of TorchScript's) have the same current driver;
// no other thread has. So models may be stepped in turn, one within another or each on a thread of
// its own. The driver outlives the installation.
//
//   a.begin (A)   b.begin (B, A)   a.resume (A)   a.end ()   b.resume (B)   b.end ()
class InstalledDriver {
 public:
  InstalledDriver() = default;
  explicit InstalledDriver(StepDriver& driver);
  ~InstalledDriver() { remove(); }
  InstalledDriver(InstalledDriver&& other) noexcept : link_(std::move(other.link_)) {}
  InstalledDriver& operator=(InstalledDriver&& other) noexcept {
    remove();
    link_ = std::move(other.link_);
    return *this;
  }
  InstalledDriver(const InstalledDriver&) = delete;
  InstalledDriver& operator=(const InstalledDriver&) = delete;

  // Makes it the calling thread's current one, whichever thread it was installed on.
  void resume() const;
  // On any thread. Those who have it as current have the one that it was put in front of.
  void remove() noexcept;

 private:
  std::shared_ptr<DriverLink> link_;
};

// The calling thread's current driver or null. Neither this nor anything above takes a lock.
//
// A plugin (executor/plugin.h) is linked against this library for itself. Its copy of this file
// answers what the program's does, since the current driver is part of LibTorch's state of a
// thread.
[[nodiscard]] StepDriver* driver();

// Of the calling thread's drivers the first that knows says it; 1 where none does.
[[nodiscard]] std::int32_t parts_of(std::string_view segment);

// Tells all of the calling thread's drivers.
void tell_layer_tensors(LayerSide side, std::string_view path, std::vector<at::Tensor>& tensors);

// The current installation, for a graph that tells its driver of its backward; null = none.
[[nodiscard]] std::shared_ptr<const DriverLink> driver_link();
// Null when it was removed, or for a null link.
[[nodiscard]] StepDriver* driver_of(const DriverLink* link);

}  // namespace stowage::executor
