// The planner: what Python's plan() calls.
#pragma once

#include <nanobind/nanobind.h>

namespace stowage::python {

void define_planning(nanobind::module_& module);

}  // namespace stowage::python
