// One tensor of several, or several of several.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

std::vector<Op> join_ops() {
  return {
      op("block_diag", {of({2, 3}), of({3, 4})},
         [](const Tensors& in) { return at::block_diag(in); })
          .saves_nothing(),
      op("broadcast_tensors", {of({3, 1, 5}), grid()},
         [](const Tensors& in) { return at::broadcast_tensors(in); })
          .saves_nothing()
          .not_as("empty"),
      op("cartesian_prod", {of({3}), of({4})},
         [](const Tensors& in) { return at::cartesian_prod(in); })
          .saves_nothing()
          .not_as("scalar"),
      op("cat", {grid(), grid()}, [](const Tensors& in) { return at::cat(in, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("column_stack", {of({4, 3}), of({4, 2})},
         [](const Tensors& in) { return at::column_stack(in); })
          .saves_nothing(),
      op("combinations", {of({6})}, [](const T& a) { return at::combinations(a, 2); })
          .not_as("scalar"),
      op("dstack", {of({4, 5}), of({4, 5})}, [](const Tensors& in) { return at::dstack(in); })
          .saves_nothing(),
      op("hstack", {grid(), grid()}, [](const Tensors& in) { return at::hstack(in); })
          .saves_nothing(),
      op("meshgrid.variadic_tensors", {of({3}), of({4})},
         [](const Tensors& in) { return at::meshgrid(in, "xy"); })
          .saves_nothing(),
      op("meshgrid.list_of_tensors", {of({3}), of({4})},
         [](const Tensors& in) { return at::meshgrid(in, "ij"); })
          .saves_nothing(),
      op("stack", {grid(), grid()}, [](const Tensors& in) { return at::stack(in, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("vstack", {grid(), grid()}, [](const Tensors& in) { return at::vstack(in); })
          .saves_nothing(),
  };
}

}  // namespace stowage::ops
