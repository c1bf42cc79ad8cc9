// State of an optimizer ahead of its first step, without memory (executor/absent_storage.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "executor/absent_storage.h"
#include "executor/model.h"

namespace stowage::executor {

// The piece of `parameter`'s state with that name, in its form; its home begins as `fill` says.
[[nodiscard]] at::Tensor unmade_state(const NamedTensor& parameter, at::ScalarType dtype,
                                      const std::string& name, Filler fill);
// Fills a home with that number.
[[nodiscard]] Filler fill_with(double number, const at::Tensor& like, at::ScalarType dtype);

// Whether no plan and no step has made it. Of a sparse or an undefined tensor: no, somebody has.
[[nodiscard]] bool is_unmade(const at::Tensor& state);
// Memory of the device's, as the first step would take it; its values are the caller's.
// Precondition: is_unmade().
void give_memory(const at::Tensor& state);

}  // namespace stowage::executor
