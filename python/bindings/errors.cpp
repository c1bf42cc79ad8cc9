#include "python/bindings/errors.h"

#include <nanobind/stl/string.h>

namespace stowage::python {

namespace nb = nanobind;

void check(const Status& status) {
  if (!status) throw Raised(status.error());
}

nb::object exception_of(const Error& error) {
  return nb::module_::import_("stowage._errors")
      .attr("from_library")(static_cast<int>(error.code), error.message, error.file, error.pointer,
                            error.hint);
}

void define_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Raised& raised) {
      const nb::object exception = exception_of(raised.error());
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    }
  });
}

}  // namespace stowage::python
