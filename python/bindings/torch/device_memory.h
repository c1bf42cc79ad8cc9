// The devices of a Python process: memory is counted from the first use on. On the CPU what is
// older is moved into counted memory, on a GPU it is known to the allocator.
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/device.h>

#include <cstdint>
#include <string>

namespace stowage::python {

// The process's own of this kind: "cpu", or "cuda" with the GPU's number, which must be the current
// one. Raises where it cannot be followed.
[[nodiscard]] executor::Device& device_of(const std::string& kind, std::int64_t index);

void define_device(nanobind::module_& module);

}  // namespace stowage::python
