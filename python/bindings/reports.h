// What is said of traces and of two values: inspect(), diff(), the list of policies.
#pragma once

#include <nanobind/nanobind.h>

namespace stowage::python {

void define_reports(nanobind::module_& module);

}  // namespace stowage::python
