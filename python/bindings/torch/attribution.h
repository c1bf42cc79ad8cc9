// hold() and the gradients of what layers return (stowage/attribute.h).
#pragma once

#include <nanobind/nanobind.h>

namespace stowage::python {

void define_attribution(nanobind::module_& module);

}  // namespace stowage::python
