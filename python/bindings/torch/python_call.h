// A callable of Python's that C++ calls and lets go of on any thread, with the GIL or without.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

namespace stowage::python {

class PythonCall {
 public:
  explicit PythonCall(nanobind::object function)
      : function_(new nanobind::object(std::move(function)), [](nanobind::object* held) {
          if (!Py_IsInitialized()) return;  // leaked behind the interpreter's end
          const nanobind::gil_scoped_acquire gil;
          delete held;
        }) {}

  // Call with the GIL.
  [[nodiscard]] const nanobind::object& function() const { return *function_; }

 private:
  std::shared_ptr<nanobind::object> function_;
};

}  // namespace stowage::python
