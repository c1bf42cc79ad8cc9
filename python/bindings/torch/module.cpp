// stowage._torch: a running step. Needs torch, imported first. What users see of it are the classes
// of python/src/stowage/.
#include <nanobind/nanobind.h>

#include <c10/util/Exception.h>
#include <stowage/engine.h>
#include <torch/csrc/Exceptions.h>

#include <cstddef>
#include <exception>
#include <string>

#include "python/bindings/errors.h"
#include "python/bindings/torch/attribution.h"
#include "python/bindings/torch/device_memory.h"
#include "python/bindings/torch/layer_call.h"
#include "python/bindings/torch/training.h"

namespace nb = nanobind;

namespace {

// What the executor says of its own functions, for who calls them from Python.
std::string in_python(std::string text) {
  const std::string cpp = "PlannedStep::materialise()";
  for (std::size_t at = 0; (at = text.find(cpp, at)) != std::string::npos;) {
    text.replace(at, cpp.size(), "Run.materialise()");
  }
  return text;
}

// LibTorch's exceptions as torch raises them.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (::python_error& error) {
    error.restore();
  } catch (const c10::OutOfMemoryError& error) {
    const nb::object type = nb::module_::import_("torch").attr("OutOfMemoryError");
    PyErr_SetString(type.ptr(), error.what_without_backtrace());
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, in_python(error.what_without_backtrace()).c_str());
  }
}

}  // namespace

NB_MODULE(_torch, module) {
  nb::set_leak_warnings(false);  // at exit of what a notebook or a traceback still holds
  stowage::executor::install_saved_tensor_engine();
  stowage::python::define_errors(module);
  nb::register_exception_translator(&translate);
  stowage::python::define_device(module);
  stowage::python::define_layer(module);
  stowage::python::define_training(module);
  stowage::python::define_attribution(module);
}
