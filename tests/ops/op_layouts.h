// How an operand lies in memory. The step makes it from a parameter, so that it can move: the
// parameter has the shape leaf(shape), and operand() of what the step computes from it has `shape`,
// or another one where the layout is about the shape.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stowage::ops {

struct OpLayout {
  std::string name;
  // Whether an operand of this shape and dtype can lie so, other than contiguous.
  bool (*fits)(const std::vector<std::int64_t>& shape, at::ScalarType dtype);
  std::vector<std::int64_t> (*leaf)(std::vector<std::int64_t> shape);
  at::Tensor (*operand)(const at::Tensor& made, const std::vector<std::int64_t>& shape);
  // Many ops take it for their first operand only.
  bool tries_first_alone = false;
};

// The first one is contiguous.
[[nodiscard]] const std::vector<OpLayout>& op_layouts();

}  // namespace stowage::ops
