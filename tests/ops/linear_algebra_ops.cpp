// Decompositions of matrices, and what is solved with them.
#include <ATen/Functions.h>

#include <tuple>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

Operand square() {
  return {{2, 4, 4}, kAny};
}
Operand tall() {
  return {{2, 5, 4}, kAny};
}

T identity_like(const T& a) {
  return at::eye(a.size(-1), a.options());
}
// Hermitian and positive definite.
T definite(const T& a) {
  return at::matmul(a, a.mH()) + identity_like(a);
}
// Far from singular.
T regular(const T& a) {
  return a + 6 * identity_like(a);
}

// Eigenvectors and singular vectors are known up to a phase, which a loss may not depend on: their
// absolute values do not.
std::vector<Op> eigenvalues() {
  return {
      op("linalg.eig", {square()},
         [](const T& a) {
           const auto [values, vectors] = at::linalg_eig(regular(a));
           return std::tuple(values, at::abs(vectors));
         })
          .not_as("scalar"),
      op("linalg.eigvals", {square()}, [](const T& a) { return at::linalg_eigvals(regular(a)); })
          .not_as("scalar"),
      op("linalg.eigh", {square()},
         [](const T& a) {
           const auto [values, vectors] = at::linalg_eigh(definite(a));
           return std::tuple(values, at::abs(vectors));
         })
          .not_as("scalar"),
      op("linalg.eigvalsh", {square()}, [](const T& a) { return at::linalg_eigvalsh(definite(a)); })
          .not_as("scalar"),
      op("svd", {tall()},
         [](const T& a) {
           const auto [u, s, v] = at::svd(a);
           return std::tuple(at::abs(u), s, at::abs(v));
         })
          .not_as("scalar"),
      op("linalg.svd", {tall()},
         [](const T& a) {
           const auto [u, s, v] = at::linalg_svd(a, false);
           return std::tuple(at::abs(u), s, at::abs(v));
         })
          .not_as("scalar"),
      op("linalg.svdvals", {tall()}, [](const T& a) { return at::linalg_svdvals(a); })
          .not_as("scalar"),
      op("linalg.cond", {square()}, [](const T& a) { return at::linalg_cond(a); })
          .not_as("empty scalar"),
      op("norm.nuc", {of({5, 4})}, [](const T& a) { return at::nuclear_norm(a); }).not_as("scalar"),
      op("linalg.matrix_norm", {tall()}, [](const T& a) { return at::linalg_matrix_norm(a, 1); })
          .not_as("scalar"),
      op("linalg.norm", {tall()}, [](const T& a) { return at::linalg_norm(a); }),
      op("linalg.norm.subgradients_at_zero", {tall()},
         [](const T& a) { return at::linalg_norm(a * 0); }),
  };
}

std::vector<Op> factors() {
  return {
      op("cholesky", {square()}, [](const T& a) { return at::cholesky(definite(a)); })
          .not_as("scalar"),
      op("linalg.cholesky", {square()},
         [](const T& a) { return at::linalg_cholesky(definite(a), true); })
          .not_as("scalar"),
      op("linalg.cholesky_ex", {square()},
         [](const T& a) { return at::linalg_cholesky_ex(definite(a)); })
          .not_as("scalar"),
      op("qr", {tall()}, [](const T& a) { return at::qr(a); }).not_as("scalar"),
      op("linalg.qr", {tall()}, [](const T& a) { return at::linalg_qr(a); }).not_as("scalar"),
      op("linalg.householder_product", {tall(), of({2, 3})}, at::linalg_householder_product)
          .not_as("empty scalar"),
      op("ormqr", {tall(), of({2, 4}), of({2, 5, 3})},
         [](const T& a, const T& b, const T& c) { return at::ormqr(a, b, c); })
          .not_as("empty scalar"),
      op("lu", {square()}, [](const T& a) { return at::_lu_with_info(regular(a)); })
          .not_as("scalar"),
      op("lu_unpack", {square()},
         [](const T& a) {
           const auto [lu, pivots] = at::linalg_lu_factor(regular(a));
           return at::lu_unpack(lu, pivots);
         })
          .not_as("scalar"),
      op("linalg.lu", {square()}, [](const T& a) { return at::linalg_lu(regular(a)); })
          .not_as("scalar"),
      op("linalg.lu_factor", {square()}, [](const T& a) { return at::linalg_lu_factor(a); })
          .not_as("scalar"),
      op("linalg.lu_factor_ex", {square()}, [](const T& a) { return at::linalg_lu_factor_ex(a); })
          .not_as("scalar"),
      op("linalg.det", {square()}, at::linalg_det).not_as("empty scalar"),
      op("linalg.slogdet", {square()}, at::linalg_slogdet).not_as("scalar"),
      op("logdet", {square()}, [](const T& a) { return at::logdet(definite(a)); }).not_as("scalar"),
      op("linalg.matrix_power", {square()},
         [](const T& a) { return at::linalg_matrix_power(a, 3); })
          .not_as("scalar"),
      op("matrix_exp", {square()}, at::matrix_exp).not_as("scalar"),
      op("linalg.vander", {of({2, 4})}, [](const T& a) { return at::linalg_vander(a, 3); }),
  };
}

std::vector<Op> inverses() {
  return {
      op("linalg.inv", {square()}, [](const T& a) { return at::linalg_inv(regular(a)); })
          .not_as("scalar"),
      op("linalg.inv_ex", {square()}, [](const T& a) { return at::linalg_inv_ex(regular(a)); })
          .not_as("scalar"),
      op("linalg.pinv", {tall()}, [](const T& a) { return at::linalg_pinv(a, 1e-6); })
          .not_as("scalar"),
      op("linalg.pinv.singular", {of({2, 5, 3}), of({2, 3, 4})},
         [](const T& a, const T& b) { return at::linalg_pinv(at::matmul(a, b), 1e-3); })
          .not_as("scalar"),
      op("linalg.pinv.hermitian", {square()},
         [](const T& a) { return at::linalg_pinv(definite(a), 1e-6, true); })
          .not_as("scalar"),
      op("pinverse", {tall()}, [](const T& a) { return at::pinverse(a); }).not_as("scalar"),
      op("cholesky_inverse", {square()},
         [](const T& a) { return at::cholesky_inverse(at::tril(regular(a))); })
          .not_as("scalar"),
      op("linalg.tensorinv", {of({4, 6, 3, 8})},
         [](const T& a) {
           return at::linalg_tensorinv(a + 6 * at::eye(24, a.options()).view({4, 6, 3, 8}), 2);
         })
          .not_as("empty"),
  };
}

std::vector<Op> solutions() {
  return {
      op("cholesky_solve", {of({2, 4, 3}), square()},
         [](const T& a, const T& b) { return at::cholesky_solve(a, at::tril(regular(b))); })
          .not_as("scalar"),
      op("linalg.lstsq", {tall(), of({2, 5, 3})},
         [](const T& a, const T& b) { return std::get<0>(at::linalg_lstsq(a, b, {}, "gels")); })
          .not_as("scalar"),
      op("linalg.lstsq.grad_oriented", {of({2, 4, 5}), of({2, 4, 3})},
         [](const T& a, const T& b) { return std::get<0>(at::linalg_lstsq(a, b, {}, "gels")); })
          .not_as("scalar"),
      op("linalg.lu_solve", {square(), of({2, 4, 3})},
         [](const T& a, const T& b) {
           const auto [lu, pivots] = at::linalg_lu_factor(regular(a));
           return at::linalg_lu_solve(lu, pivots, b);
         })
          .not_as("scalar"),
      op("lu_solve", {of({2, 4, 3}), square()},
         [](const T& a, const T& b) {
           const auto [lu, pivots] = at::linalg_lu_factor(regular(b));
           return at::lu_solve(a, lu, pivots);
         })
          .not_as("scalar"),
      op("linalg.solve", {square(), of({2, 4, 3})},
         [](const T& a, const T& b) { return at::linalg_solve(regular(a), b); })
          .not_as("scalar"),
      op("linalg.solve_ex", {square(), of({2, 4, 3})},
         [](const T& a, const T& b) { return at::linalg_solve_ex(regular(a), b); })
          .not_as("scalar"),
      op("linalg.solve_triangular", {square(), of({2, 4, 3})},
         [](const T& a, const T& b) { return at::linalg_solve_triangular(regular(a), b, true); })
          .not_as("scalar"),
      op("triangular_solve", {of({2, 4, 3}), square()},
         [](const T& a, const T& b) { return at::triangular_solve(a, regular(b)); })
          .not_as("scalar"),
      op("linalg.tensorsolve", {of({2, 3, 6}), of({2, 3})},
         [](const T& a, const T& b) {
           return at::linalg_tensorsolve(a + 6 * at::eye(6, a.options()).view({2, 3, 6}), b);
         })
          .not_as("empty"),
  };
}

}  // namespace

std::vector<Op> linear_algebra_ops() {
  std::vector<Op> all = eigenvalues();
  for (auto* const more : {&factors, &inverses, &solutions}) {
    for (Op& each : more()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace stowage::ops
