// stowage::layer() for a function of Python's, and what the driver of a running step has to hear
// from Python: backward and the optimizer's updates, which do not come by the engine there.
#pragma once

#include <nanobind/nanobind.h>

namespace stowage::python {

void define_layer(nanobind::module_& module);

}  // namespace stowage::python
