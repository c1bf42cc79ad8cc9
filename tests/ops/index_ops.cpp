// Elements picked, or written, by indices and masks.
#include <ATen/Functions.h>

#include <optional>
#include <string>
#include <tuple>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

using Indices = c10::List<std::optional<T>>;

// Of dimension 2 and of dimension 1: one each.
Indices two_indices(const T& like) {
  return Indices({std::optional<T>(), std::optional<T>(numbers(like, {7}, 3)),
                  std::optional<T>(numbers(like, {7}, 4))});
}

Op index_reduce_by(const char* name) {
  return op(std::string("index_reduce.") + name, {grid(kPositive), of({2, 6, 4, 5}, kPositive)},
            [name](const T& a, const T& b) {
              return at::index_reduce(a, 1, numbers(a, {6}, 3), b, name);
            })
      .not_as("scalar");
}

Op scatter_reduce_by(const char* name) {
  return op(std::string("scatter_reduce.") + name, {grid(kPositive), grid(kPositive)},
            [name](const T& a, const T& b) {
              return at::scatter_reduce(a, 1, numbers(a, {2, 3, 4, 5}, 3), b, name);
            })
      .not_as("empty scalar");
}

}  // namespace

std::vector<Op> index_ops() {
  return {
      op("__getitem__", {grid()}, [](const T& a) { return at::index(a, two_indices(a)); })
          .not_as("scalar"),
      op("index_put", {grid(), of({2, 7, 5})},
         [](const T& a, const T& b) { return at::index_put(a, two_indices(a), b, true); })
          .not_as("scalar"),
      op("_unsafe_masked_index", {grid()},
         [](const T& a) {
           return at::_unsafe_masked_index(a, mask(a, {2, 7, 5}), two_indices(a), 0.5);
         })
          .not_as("scalar"),
      op("_unsafe_masked_index_put_accumulate", {grid(), of({2, 7, 5})},
         [](const T& a, const T& b) {
           return at::_unsafe_masked_index_put_accumulate(a, mask(a, {2, 7, 5}), two_indices(a), b);
         })
          .not_as("empty scalar"),
      op("gather", {grid()},
         [](const T& a) {
           return at::gather(a, 1, numbers(a, {2, 6, 4, 3}, 3));
         })
          .not_as("empty scalar"),
      op("take", {grid()},
         [](const T& a) {
           return at::take(a, numbers(a, {4, 4}, 120));
         })
          .not_as("empty scalar"),
      op("take_along_dim", {grid()},
         [](const T& a) {
           return at::take_along_dim(a, numbers(a, {2, 6, 4, 5}, 3), 1);
         })
          .not_as("empty scalar"),
      op("put", {grid(), of({4, 4})},
         [](const T& a, const T& b) {
           return at::put(a, numbers(a, {4, 4}, 120), b);
         })
          .not_as("empty scalar"),
      op("scatter", {grid(), grid()},
         [](const T& a, const T& b) {
           return at::scatter(a, 1, numbers(a, {2, 3, 4, 5}, 3), b);
         })
          .not_as("empty scalar"),
      op("scatter_add", {grid(), grid()},
         [](const T& a, const T& b) {
           return at::scatter_add(a, 1, numbers(a, {2, 3, 4, 5}, 3), b);
         })
          .not_as("empty scalar"),
      scatter_reduce_by("sum"),
      scatter_reduce_by("prod"),
      scatter_reduce_by("mean"),
      scatter_reduce_by("amin"),
      scatter_reduce_by("amax"),
      op("index_select", {grid()},
         [](const T& a) { return at::index_select(a, 1, numbers(a, {6}, 3)); })
          .not_as("scalar"),
      op("index_add", {grid(), of({2, 6, 4, 5})},
         [](const T& a, const T& b) { return at::index_add(a, 1, numbers(a, {6}, 3), b, 2); })
          .not_as("scalar"),
      op("index_copy", {grid(), of({2, 2, 4, 5})},
         [](const T& a, const T& b) { return at::index_copy(a, 1, numbers(a, {2}, 3), b); })
          .not_as("scalar"),
      op("index_fill", {grid()},
         [](const T& a) { return at::index_fill(a, 1, numbers(a, {2}, 3), 0.5); })
          .not_as("scalar"),
      index_reduce_by("prod"),
      index_reduce_by("mean"),
      index_reduce_by("amin"),
      index_reduce_by("amax"),
      op("masked_fill", {grid()},
         [](const T& a) { return at::masked_fill(a, mask(a, a.sizes()), 0.5); }),
      op("masked_scatter", {grid(), grid()},
         [](const T& a, const T& b) { return at::masked_scatter(a, mask(a, a.sizes()), b); }),
      op("masked_select", {grid()},
         [](const T& a) { return at::masked_select(a, mask(a, a.sizes())); }),
      op("nn.functional.embedding", {of({10, 5})},
         [](const T& a) {
           return at::embedding(a, numbers(a, {4, 6}, 10), 3);
         })
          .not_as("empty scalar"),
      op("nn.functional.embedding_bag", {of({10, 5})},
         [](const T& a) {
           const T offsets = integers(a, {0, 4, 5});
           return std::get<0>(at::embedding_bag(a, numbers(a, {12}, 10), offsets, false, 2));
         })
          .not_as("empty scalar"),
  };
}

}  // namespace stowage::ops
