// What PyTorch's dispatcher says of a running op, for the profiler and for ops that run again.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>

namespace stowage::executor {

// Calls visit(tensor, place in its list, or -1) for each tensor of an argument or a result, in
// order, undefined ones too.
template <class Visit>
void visit_tensors(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor(), -1);
  } else if (value.isTensorList()) {
    std::int32_t place = 0;
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor, place++);
  }
}

// PyTorch makes it of other ops, each of which autograd and autocast see
// (CompositeImplicitAutograd: `aten::linear`, `aten::matmul`,
// `aten::scaled_dot_product_attention`); or it is no op, just a function that somebody marked.
// Cost: a look into a table.
[[nodiscard]] bool is_composite(const at::RecordFunction& function);

}  // namespace stowage::executor
