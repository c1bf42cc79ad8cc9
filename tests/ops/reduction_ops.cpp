// Sums, extremes, statistics, scans and orders along dimensions.
#include <ATen/Functions.h>

#include <cmath>
#include <optional>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

std::vector<Op> sums() {
  return {
      op("sum", {grid()},
         [](const T& a) {
           return at::sum(a, {1, 3});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nansum", {grid()},
         [](const T& a) {
           return at::nansum(at::log(a), {1, 3});
         })
          .not_as("scalar"),
      op("sum_to_size", {grid()},
         [](const T& a) {
           return a.sum_to_size({3, 1, 5});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("mean", {grid()},
         [](const T& a) {
           return at::mean(a, at::IntArrayRef{0, 2}, true);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nanmean", {grid()}, [](const T& a) { return at::nanmean(at::log(a), {1}); })
          .not_as("scalar"),
      op("prod", {grid()}, [](const T& a) { return at::prod(a, 1); }).not_as("scalar"),
      op("logsumexp", {grid()},
         [](const T& a) {
           return at::logsumexp(a, {1, 2});
         })
          .not_as("scalar"),
      op("trace", {of({5, 4})}, at::trace).saves_nothing().not_as("scalar"),
      op("trapz", {grid()}, [](const T& a) { return at::trapz(a, 0.5, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("trapezoid", {grid(), grid()},
         [](const T& a, const T& b) { return at::trapezoid(a, b, 2); })
          .not_as("scalar"),
      op("cumulative_trapezoid", {grid(), grid()},
         [](const T& a, const T& b) { return at::cumulative_trapezoid(a, b); })
          .not_as("scalar"),
      op("var", {grid()},
         [](const T& a) {
           return at::var(a, {1, 2}, 2);
         })
          .not_as("scalar"),
      op("var.unbiased", {grid()}, [](const T& a) { return at::var(a, true); }),
      op("std", {grid()},
         [](const T& a) {
           return at::std(a, {1, 2}, 2);
         })
          .not_as("scalar"),
      op("std.unbiased", {grid()}, [](const T& a) { return at::std(a, true); }),
      op("var_mean", {grid()},
         [](const T& a) {
           return at::var_mean(a, {1, 2}, 2);
         })
          .not_as("scalar"),
      op("var_mean.unbiased", {grid()}, [](const T& a) { return at::var_mean(a, true); }),
      op("std_mean", {grid()},
         [](const T& a) {
           return at::std_mean(a, {1, 2}, 2);
         })
          .not_as("scalar"),
      op("std_mean.unbiased", {grid()}, [](const T& a) { return at::std_mean(a, true); }),
      op("cov", {of({4, 6})}, [](const T& a) { return at::cov(a); }),
      op("corrcoef", {of({4, 6})}, at::corrcoef),
      op("norm", {grid()},
         [](const T& a) {
           return at::norm(a, 3, {1, 2});
         })
          .not_as("scalar"),
      op("norm.fro", {grid()},
         [](const T& a) {
           return at::norm(a, 2, {1, 2});
         })
          .not_as("scalar"),
      op("norm.inf", {grid()},
         [](const T& a) {
           return at::norm(a, INFINITY, {1, 2});
         })
          .not_as("scalar"),
      op("linalg.vector_norm", {grid()}, [](const T& a) { return at::linalg_vector_norm(a, 1.5); }),
      op("renorm", {grid()}, [](const T& a) { return at::renorm(a, 2, 1, 0.7); }).not_as("scalar"),
      op("dist", {grid(), grid()}, [](const T& a, const T& b) { return at::dist(a, b, 3); }),
      op("_segment_reduce.lengths", {of({6, 5})},
         [](const T& a) {
           const T lengths = integers(a, {1, a.size(0) - 3, 2});
           return at::segment_reduce(a, "max", lengths);
         })
          .not_as("empty scalar"),
      op("_segment_reduce.offsets", {of({6, 5})},
         [](const T& a) {
           const T offsets = integers(a, {0, a.size(0) / 3, a.size(0) / 2, a.size(0)});
           return at::segment_reduce(a, "mean", {}, {}, offsets);
         })
          .not_as("scalar"),
  };
}

std::vector<Op> scans() {
  return {
      op("cumsum", {grid()}, [](const T& a) { return at::cumsum(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("cumprod", {grid()}, [](const T& a) { return at::cumprod(a, 1); }).not_as("scalar"),
      op("cummax", {grid()}, [](const T& a) { return at::cummax(a, 1); }).not_as("scalar"),
      op("cummin", {grid()}, [](const T& a) { return at::cummin(a, 1); }).not_as("scalar"),
      op("logcumsumexp", {grid()}, [](const T& a) { return at::logcumsumexp(a, 1); })
          .not_as("scalar"),
      op("diff", {grid()}, [](const T& a) { return at::diff(a, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("gradient", {grid()},
         [](const T& a) { return at::gradient(a, std::optional<at::Scalar>(0.5), 2); })
          .saves_nothing()
          .not_as("scalar"),
  };
}

std::vector<Op> orders() {
  return {
      op("amax", {grid()},
         [](const T& a) {
           return at::amax(a, {1, 3});
         })
          .not_as("scalar"),
      op("amin", {grid()},
         [](const T& a) {
           return at::amin(a, {1, 3});
         })
          .not_as("scalar"),
      op("max.reduction_with_dim", {grid()}, [](const T& a) { return at::max(a, 1); })
          .not_as("scalar"),
      op("max.reduction_no_dim", {grid()}, [](const T& a) { return at::max(a); }).not_as("empty"),
      op("min.reduction_with_dim", {grid()}, [](const T& a) { return at::min(a, 1); })
          .not_as("scalar"),
      op("min.reduction_no_dim", {grid()}, [](const T& a) { return at::min(a); }).not_as("empty"),
      op("median", {grid()}, [](const T& a) { return at::median(a, 1); }).not_as("scalar"),
      op("nanmedian", {grid()}, [](const T& a) { return at::nanmedian(a); }),
      op("mode", {grid()}, [](const T& a) { return at::mode(at::round(a), 3); }).not_as("scalar"),
      op("kthvalue", {grid()}, [](const T& a) { return at::kthvalue(a, 2, 1); }).not_as("scalar"),
      op("topk", {grid()}, [](const T& a) { return at::topk(a, 2, 1); }).not_as("scalar"),
      op("sort", {grid()}, [](const T& a) { return at::sort(a, 1); }).not_as("scalar"),
      op("msort", {grid()}, at::msort),
      op("quantile", {grid()}, [](const T& a) { return at::quantile(a, 0.3, 1); })
          .not_as("empty scalar"),
      op("nanquantile", {grid()}, [](const T& a) { return at::nanquantile(a, 0.3, 1); })
          .not_as("empty scalar"),
  };
}

}  // namespace

std::vector<Op> reduction_ops() {
  std::vector<Op> all = sums();
  for (auto* const more : {&scans, &orders}) {
    for (Op& each : more()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace stowage::ops
