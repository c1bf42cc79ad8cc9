// Recording a loop and running it under a plan, for Python: stowage::profiler::record() on a fiber
// and stowage::executor::PlannedTraining.
#pragma once

#include <nanobind/nanobind.h>

namespace stowage::python {

void define_training(nanobind::module_& module);

}  // namespace stowage::python
