// Products of matrices and vectors.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

std::vector<Op> product_ops() {
  return {
      op("mm", {of({4, 5}), of({5, 6})}, [](const T& a, const T& b) { return at::mm(a, b); })
          .not_as("scalar"),
      op("mv", {of({4, 5}), of({5})}, at::mv).not_as("scalar"),
      op("bmm", {of({2, 4, 5}), of({2, 5, 6})},
         [](const T& a, const T& b) { return at::bmm(a, b); })
          .not_as("scalar"),
      op("dot", {of({9}), of({9})}, at::dot).not_as("scalar"),
      op("vdot", {of({9}), of({9})}, at::vdot).not_as("scalar"),
      op("inner", {of({4, 5}), of({3, 5})}, at::inner),
      op("outer", {of({4}), of({5})}, at::outer).not_as("scalar"),
      op("kron", {of({2, 3}), of({4, 5})}, at::kron),
      op("matmul", {of({2, 3, 4, 5}), of({2, 1, 5, 6})}, at::matmul).not_as("scalar"),
      op("addmm", {of({4, 6}), of({4, 5}), of({5, 6})},
         [](const T& a, const T& b, const T& c) { return at::addmm(a, b, c, 0.5, 2); })
          .not_as("empty"),
      op("addmv", {of({4}), of({4, 5}), of({5})},
         [](const T& a, const T& b, const T& c) { return at::addmv(a, b, c, 0.5, 2); })
          .not_as("empty"),
      op("addr", {of({4, 5}), of({4}), of({5})},
         [](const T& a, const T& b, const T& c) { return at::addr(a, b, c, 0.5, 2); })
          .not_as("empty"),
      op("addbmm", {of({4, 6}), of({2, 4, 5}), of({2, 5, 6})},
         [](const T& a, const T& b, const T& c) { return at::addbmm(a, b, c, 0.5, 2); })
          .not_as("empty"),
      op("baddbmm", {of({2, 4, 6}), of({2, 4, 5}), of({2, 5, 6})},
         [](const T& a, const T& b, const T& c) { return at::baddbmm(a, b, c, 0.5, 2); }),
      op("einsum", {grid(), of({3, 4, 6})},
         [](const Tensors& in) { return at::einsum("abcd,bce->aed", in); })
          .not_as("scalar"),
      op("tensordot", {grid(), of({4, 3, 6})},
         [](const T& a, const T& b) {
           return at::tensordot(a, b, {1, 2}, {1, 0});
         })
          .not_as("scalar"),
      op("linalg.multi_dot", {of({4, 5}), of({5, 3}), of({3, 6})},
         [](const Tensors& in) { return at::linalg_multi_dot(in); })
          .not_as("scalar"),
      op("linalg.vecdot", {grid(), grid()},
         [](const T& a, const T& b) { return at::linalg_vecdot(a, b, 1); }),
      op("cross", {grid(), grid()}, [](const T& a, const T& b) { return at::cross(a, b, 1); })
          .not_as("scalar"),
      op("linalg.cross", {grid(), of({2, 3, 1, 5})},
         [](const T& a, const T& b) { return at::linalg_cross(a, b, 1); })
          .not_as("scalar"),
      op("nn.functional.linear", {of({2, 4, 5}), of({6, 5}), of({6})},
         [](const T& a, const T& b, const T& c) { return at::linear(a, b, c); })
          .not_as("scalar"),
      op("nn.functional.bilinear", {of({4, 5}), of({4, 3}), of({6, 5, 3}), of({6})},
         [](const T& a, const T& b, const T& c, const T& d) { return at::bilinear(a, b, c, d); })
          .not_as("scalar"),
      op("sparse.sampled_addmm", {of({4, 5}), of({5, 6})},
         [](const T& a, const T& b) {
           const T where = at::triu(at::ones({4, 6}, a.options())).to_sparse_csr();
           return at::sparse_sampled_addmm(where, a, b, 1, 2).to_dense();
         })
          .not_as("empty scalar"),
      op("sparse.mm.reduce", {of({5, 6})},
         [](const T& a) {
           const T sparse = at::triu(at::ones({4, a.size(0)}, a.options())).to_sparse_csr();
           return at::_sparse_mm(sparse, a, "amax");
         })
          .not_as("scalar")
          .crashes_as("negated"),
  };
}

}  // namespace stowage::ops
