#include "python/bindings/torch/layer_call.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/engine.h>
#include <stowage/layer.h>
#include <torch/csrc/Exceptions.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/torch/python_call.h"
#include "python/bindings/torch/tensor_caster.h"

namespace stowage::python {

namespace {

namespace nb = nanobind;
using Tensors = std::vector<at::Tensor>;

PyObject* g_run_ended = nullptr;  // the module's class, which lives as long as the process

// LibTorch's bindings carry it through Python's frames. On any thread, with the GIL or without.
void throw_run_ended() {
  const nb::gil_scoped_acquire gil;
  PyErr_SetNone(g_run_ended);
  ::python_error carried;
  carried.persist();
  throw carried;
}

// Where it leaves a layer for the Python function around that.
void translate_run_ended(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const executor::RunEnded&) {
    PyErr_SetNone(g_run_ended);
  }
}

// An exception of Python's on its way through LibTorch, whose autograd threads keep this type
// whole.
[[noreturn]] void throw_through_torch(nb::python_error& error) {
  if (error.matches(g_run_ended)) throw executor::RunEnded{};
  error.restore();
  ::python_error carried;
  carried.persist();
  throw carried;
}

Tensors call(const PythonCall& function, const Tensors& inputs) {
  const nb::gil_scoped_acquire gil;
  try {
    return nb::cast<Tensors>(function.function()(inputs));
  } catch (nb::python_error& error) {
    throw_through_torch(error);
  }
}

Tensors run_layer(const std::string& path, nb::object function, Tensors inputs,
                  bool may_run_again) {
  const LayerFn fn = [held = PythonCall(std::move(function))](const Tensors& given) {
    return call(held, given);
  };
  return may_run_again ? layer(path, fn, std::move(inputs))
                       : layer_once(path, fn, std::move(inputs));
}

// A backward, and the driver that it began under.
struct BackwardCall {
  std::shared_ptr<const executor::DriverLink> link;
  executor::BackwardTask task;
};

// Of what backward starts at: what is no tensor is an edge of the graph.
Tensors tensors_among(const nb::handle& roots) {
  Tensors tensors;
  for (const nb::handle root : nb::iter(roots)) {
    if (THPVariable_Check(root.ptr())) tensors.push_back(THPVariable_Unpack(root.ptr()));
  }
  return tensors;
}

nb::object backward_begin(const nb::handle& roots) {
  std::shared_ptr<const executor::DriverLink> link = executor::driver_link();
  executor::StepDriver* const driver = executor::driver_of(link.get());
  if (driver == nullptr) return nb::none();
  driver->backward_begin();
  return nb::cast(BackwardCall{std::move(link), executor::BackwardTask(tensors_among(roots))});
}

void backward_end(BackwardCall& call) {
  {
    const nb::gil_scoped_release no_gil;
    call.task.wait();
  }
  if (executor::StepDriver* const driver = executor::driver_of(call.link.get())) {
    driver->backward_end();
  }
}

// Whether the optimizer is to update this parameter; then update_end() behind it.
bool update_begin(const at::Tensor& parameter) {
  executor::StepDriver* const driver = executor::driver();
  if (driver == nullptr) return true;
  if (driver->updates_elsewhere(parameter)) return false;
  driver->parameter_update(executor::UpdateEvent::begin, parameter);
  return true;
}

void update_end(const at::Tensor& parameter) {
  if (executor::StepDriver* const driver = executor::driver()) {
    driver->parameter_update(executor::UpdateEvent::end, parameter);
  }
}

void skip_update() {
  if (executor::StepDriver* const driver = executor::driver()) driver->skip_update();
}

}  // namespace

void define_layer(nb::module_& module) {
  // Not an Exception, so that no module's own handler takes it.
  g_run_ended = PyErr_NewExceptionWithDoc(
      "stowage._torch.RunEnded", "Ends layers that run again once nothing more of them is needed.",
      PyExc_BaseException, nullptr);
  if (g_run_ended == nullptr) throw nb::python_error();
  module.attr("RunEnded") = nb::borrow(g_run_ended);
  nb::register_exception_translator(&translate_run_ended);
  executor::carry_run_ended(&throw_run_ended);
  nb::class_<BackwardCall>(module, "BackwardCall");
  module.def("layer", &run_layer, nb::arg("path"), nb::arg("function"), nb::arg("inputs"),
             nb::arg("may_run_again"),
             "Runs function(inputs), a list of tensors in and out, as the layer `path`.");
  module.def("backward_begin", &backward_begin, nb::arg("roots"),
             "Tells the running step's driver; None where no step runs.");
  module.def("backward_end", &backward_end, nb::arg("call"),
             "Waits until autograd's threads have let go of it, and tells the driver.");
  module.def("update_begin", &update_begin, nb::arg("parameter"),
             "Whether the optimizer is to update it: then update_end() follows.");
  module.def("update_end", &update_end, nb::arg("parameter"));
  module.def("skip_update", &skip_update, "In the place of all updates of a step.");
}

}  // namespace stowage::python
