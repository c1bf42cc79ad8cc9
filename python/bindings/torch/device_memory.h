// The CPU as the device of a Python process: its allocator is counted from the first use on, and
// what is older is moved into counted memory.
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/device.h>

namespace stowage::python {

// The process's own. Raises where another CPU allocator took its place.
[[nodiscard]] executor::Device& cpu();

void define_device(nanobind::module_& module);

}  // namespace stowage::python
