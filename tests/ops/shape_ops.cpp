// Views of one tensor and their copies, and what else only moves elements.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

std::vector<Op> views() {
  return {
      op("T", {of({4, 5})}, [](const T& a) { return a.numpy_T(); }).saves_nothing(),
      op("H", {of({4, 5})}, [](const T& a) { return a.matrix_H(); })
          .saves_nothing()
          .not_as("negated.complex32"),
      op("mT", {grid()}, [](const T& a) { return a.mT(); }).saves_nothing(),
      op("mH", {grid()}, [](const T& a) { return a.mH(); })
          .saves_nothing()
          .not_as("negated.complex32"),
      op("t", {of({4, 5})}, at::t).saves_nothing(),
      op("as_strided", {grid()},
         [](const T& a) {
           return at::as_strided(a, {2, 3}, {1, 2}, 0);
         })
          .saves_nothing()
          .not_as("empty scalar"),
      op("as_strided.partial_views", {grid()},
         [](const T& a) {
           return at::as_strided(a, {2, 2}, {1, 1}, a.storage_offset());
         })
          .saves_nothing()
          .not_as("empty scalar"),
      op("atleast_1d", {grid()}, [](const T& a) { return at::atleast_1d(a); }).saves_nothing(),
      op("atleast_2d", {of({5})}, [](const T& a) { return at::atleast_2d(a); }).saves_nothing(),
      op("atleast_3d", {of({4, 5})}, [](const T& a) { return at::atleast_3d(a); }).saves_nothing(),
      op("broadcast_to", {of({3, 1, 5})},
         [](const T& a) {
           return at::broadcast_to(a, {2, 3, 4, 5});
         })
          .saves_nothing()
          .not_as("empty"),
      op("diagonal", {grid()}, [](const T& a) { return at::diagonal(a, 1, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("linalg.diagonal", {grid()}, [](const T& a) { return at::linalg_diagonal(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("diag", {of({4, 5})}, [](const T& a) { return at::diag(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("expand", {of({3, 1, 5})},
         [](const T& a) {
           return a.expand({2, 3, 4, 5});
         })
          .saves_nothing()
          .not_as("empty"),
      op("expand_as", {of({3, 1, 5}), grid()},
         [](const T& a, const T& b) { return a.expand_as(b); })
          .saves_nothing()
          .not_as("empty"),
      op("flatten", {grid()}, [](const T& a) { return at::flatten(a, 1, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("movedim", {grid()},
         [](const T& a) {
           return at::movedim(a, {0, 1}, {2, 3});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("narrow", {grid()}, [](const T& a) { return at::narrow(a, 1, 1, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("permute", {grid()},
         [](const T& a) {
           return at::permute(a, {2, 0, 3, 1});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("ravel", {grid()}, at::ravel).saves_nothing(),
      op("reshape", {grid()},
         [](const T& a) {
           return at::reshape(a, {6, -1});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("reshape_as", {grid(), of({6, 20})},
         [](const T& a, const T& b) { return a.reshape_as(b); })
          .saves_nothing(),
      op("select", {grid()}, [](const T& a) { return at::select(a, 1, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("slice", {grid()}, [](const T& a) { return at::slice(a, 3, 1, 5, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("squeeze", {of({1, 3, 1, 5})}, [](const T& a) { return at::squeeze(a); }).saves_nothing(),
      op("squeeze.multiple", {of({1, 3, 1, 5})},
         [](const T& a) {
           return at::squeeze(a, {0, 2});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("transpose", {grid()}, [](const T& a) { return at::transpose(a, 1, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("unflatten", {grid()},
         [](const T& a) {
           return at::unflatten(a, 2, {2, 2});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("unfold", {grid()}, [](const T& a) { return a.unfold(2, 3, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("unsqueeze", {grid()}, [](const T& a) { return at::unsqueeze(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("view", {grid()},
         [](const T& a) {
           return a.view({a.size(0), 3, -1});
         })
          .saves_nothing()
          .not_as("empty scalar transposed"),
      op("view_as", {grid(), of({2, 3, 20})}, [](const T& a, const T& b) { return a.view_as(b); })
          .saves_nothing()
          .not_as("transposed"),
  };
}

std::vector<Op> parts() {
  return {
      op("chunk", {grid()}, [](const T& a) { return at::chunk(a, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("unsafe_chunk", {grid()}, [](const T& a) { return at::unsafe_chunk(a, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("split", {grid()}, [](const T& a) { return at::split(a, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("split.list_args", {grid()},
         [](const T& a) {
           return at::split(a, at::IntArrayRef{1, 4}, 3);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("split_with_sizes", {grid()},
         [](const T& a) {
           return at::split_with_sizes(a, {1, 4}, 3);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("unsafe_split", {grid()}, [](const T& a) { return at::unsafe_split(a, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("tensor_split", {grid()}, [](const T& a) { return at::tensor_split(a, 3, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("hsplit", {grid()}, [](const T& a) { return at::hsplit(a, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("vsplit", {grid()}, [](const T& a) { return at::vsplit(a, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("dsplit", {grid()}, [](const T& a) { return at::dsplit(a, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("unbind", {grid()}, [](const T& a) { return at::unbind(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
  };
}

std::vector<Op> copies() {
  return {
      op("as_strided_copy", {grid()},
         [](const T& a) {
           return at::as_strided_copy(a, {2, 3}, {1, 2}, 0);
         })
          .saves_nothing()
          .not_as("empty scalar"),
      op("as_strided_scatter", {grid(), of({2, 3})},
         [](const T& a, const T& b) {
           return at::as_strided_scatter(a, b, {2, 3}, {1, 2}, 0);
         })
          .saves_nothing()
          .not_as("channels_last empty every_second expanded scalar transposed"),
      op("constant_pad_nd", {grid()},
         [](const T& a) {
           return at::constant_pad_nd(a, {1, 2, -1, 0});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("diag_embed", {grid()}, [](const T& a) { return at::diag_embed(a, 1, 0, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("diagflat", {of({4, 3})}, [](const T& a) { return at::diagflat(a, -1); }).saves_nothing(),
      op("diagonal_copy", {grid()}, [](const T& a) { return at::diagonal_copy(a, 1, 2, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("diagonal_scatter", {of({4, 5}), of({4})},
         [](const T& a, const T& b) { return at::diagonal_scatter(a, b, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("expand_copy", {of({3, 1, 5})},
         [](const T& a) {
           return at::expand_copy(a, {2, 3, 4, 5});
         })
          .saves_nothing()
          .not_as("empty"),
      op("flip", {grid()},
         [](const T& a) {
           return at::flip(a, {1, 3});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("fliplr", {grid()}, at::fliplr).saves_nothing().not_as("scalar"),
      op("flipud", {grid()}, at::flipud).saves_nothing().not_as("scalar"),
      op("nn.functional.channel_shuffle", {of({2, 6, 4, 5})},
         [](const T& a) { return at::channel_shuffle(a, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.pixel_shuffle", {of({2, 8, 3, 5})},
         [](const T& a) { return at::pixel_shuffle(a, 2); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("nn.functional.pixel_unshuffle", {of({2, 2, 4, 6})},
         [](const T& a) { return at::pixel_unshuffle(a, 2); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("nn.functional.unfold", {of({2, 3, 6, 5})},
         [](const T& a) {
           return at::im2col(a, {2, 3}, {1, 1}, {1, 0}, {2, 1});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("permute_copy", {grid()},
         [](const T& a) {
           return at::permute_copy(a, {2, 0, 3, 1});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("repeat", {grid()},
         [](const T& a) {
           return a.repeat({2, 1, 2, 1});
         })
          .saves_nothing(),
      op("repeat_interleave", {grid()},
         [](const T& a) { return at::repeat_interleave(a, numbers(a, {4}, 3), 2); })
          .not_as("scalar"),
      op("roll", {grid()},
         [](const T& a) {
           return at::roll(a, {1, -2}, {1, 3});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("rot90", {grid()},
         [](const T& a) {
           return at::rot90(a, 1, {1, 3});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("select_scatter", {grid(), of({2, 4, 5})},
         [](const T& a, const T& b) { return at::select_scatter(a, b, 1, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("slice_scatter", {grid(), of({2, 3, 4, 2})},
         [](const T& a, const T& b) { return at::slice_scatter(a, b, 3, 1, 5, 2); })
          .saves_nothing()
          .not_as("scalar"),
      op("split_with_sizes_copy", {grid()},
         [](const T& a) {
           return at::split_with_sizes_copy(a, {1, 4}, 3);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("squeeze_copy", {of({1, 3, 1, 5})}, [](const T& a) { return at::squeeze_copy(a); })
          .saves_nothing(),
      op("t_copy", {of({4, 5})}, at::t_copy).saves_nothing(),
      op("tile", {grid()},
         [](const T& a) {
           return at::tile(a, {2, 1, 2});
         })
          .saves_nothing(),
      op("to_sparse", {of({4, 5})}, [](const T& a) { return a.to_sparse().to_dense(); })
          .saves_nothing(),
      op("transpose_copy", {grid()}, [](const T& a) { return at::transpose_copy(a, 1, 3); })
          .saves_nothing()
          .not_as("scalar"),
      op("tril", {grid()}, [](const T& a) { return at::tril(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("triu", {grid()}, [](const T& a) { return at::triu(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("unbind_copy", {grid()}, [](const T& a) { return at::unbind_copy(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("unfold_copy", {grid()}, [](const T& a) { return at::unfold_copy(a, 2, 3, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("unsqueeze_copy", {grid()}, [](const T& a) { return at::unsqueeze_copy(a, 1); })
          .saves_nothing()
          .not_as("scalar"),
      op("view_copy", {grid()},
         [](const T& a) {
           return at::view_copy(a, {6, 20});
         })
          .saves_nothing()
          .not_as("empty scalar"),
  };
}

}  // namespace

std::vector<Op> shape_ops() {
  std::vector<Op> all = views();
  for (auto* const more : {&parts, &copies}) {
    for (Op& each : more()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace stowage::ops
