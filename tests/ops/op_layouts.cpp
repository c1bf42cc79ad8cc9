#include "tests/ops/op_layouts.h"

#include <ATen/Functions.h>

#include <utility>

namespace stowage::ops {

namespace {

using Shape = std::vector<std::int64_t>;

bool always(const Shape& /*shape*/, at::ScalarType /*dtype*/) {
  return true;
}
bool has_dimensions(const Shape& shape, at::ScalarType /*dtype*/) {
  return !shape.empty();
}
Shape same_shape(Shape shape) {
  return shape;
}
at::Tensor as_made(const at::Tensor& made, const Shape& /*shape*/) {
  return made;
}

OpLayout transposed() {
  return {"transposed", [](const Shape& shape, at::ScalarType) { return shape.size() >= 2; },
          [](Shape shape) {
            std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
            return shape;
          },
          [](const at::Tensor& made, const Shape&) { return made.transpose(-1, -2); }};
}

OpLayout channels_last() {
  return {"channels_last",
          [](const Shape& shape, at::ScalarType) { return shape.size() == 4 || shape.size() == 5; },
          &same_shape,
          [](const at::Tensor& made, const Shape& shape) {
            return made.contiguous(shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                     : at::MemoryFormat::ChannelsLast3d);
          }};
}

// Elements of a larger storage, from its middle.
OpLayout slice() {
  return {"slice", &has_dimensions,
          [](Shape shape) {
            shape[0] += 5;
            return shape;
          },
          [](const at::Tensor& made, const Shape& shape) { return made.narrow(0, 3, shape[0]); }};
}

OpLayout every_second() {
  return {"every_second", &has_dimensions,
          [](Shape shape) {
            shape.back() *= 2;
            return shape;
          },
          [](const at::Tensor& made, const Shape& shape) {
            return made.slice(-1, 1, 2 * shape.back(), 2);
          }};
}

// Stride 0. Its backward is a sum, which PyTorch has not for complex32.
OpLayout expanded() {
  return {"expanded",
          [](const Shape& shape, at::ScalarType dtype) {
            return !shape.empty() && shape[0] > 1 && dtype != at::kComplexHalf;
          },
          [](Shape shape) {
            shape[0] = 1;
            return shape;
          },
          [](const at::Tensor& made, const Shape& shape) { return made.expand(shape); }};
}

OpLayout empty() {
  return {"empty", &has_dimensions,
          [](Shape shape) {
            shape[0] = 0;
            return shape;
          },
          &as_made, true};
}

// 0-dim.
OpLayout scalar() {
  return {"scalar", &always, [](Shape) { return Shape(); }, &as_made, true};
}

// Views of which the kernels learn by a bit of the tensor.
OpLayout conjugated() {
  return {"conjugated", [](const Shape&, at::ScalarType dtype) { return at::isComplexType(dtype); },
          &same_shape, [](const at::Tensor& made, const Shape&) { return made.conj(); }};
}
OpLayout negated() {
  return {"negated", &always, &same_shape,
          [](const at::Tensor& made, const Shape&) { return at::_neg_view(made.neg()); }};
}

}  // namespace

const std::vector<OpLayout>& op_layouts() {
  static const std::vector<OpLayout> all = {
      {"contiguous", &always, &same_shape, &as_made},
      transposed(),
      channels_last(),
      slice(),
      every_second(),
      expanded(),
      empty(),
      scalar(),
      conjugated(),
      negated(),
  };
  return all;
}

}  // namespace stowage::ops
