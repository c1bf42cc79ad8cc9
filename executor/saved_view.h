// SavedView: all of a saved tensor except its bytes. From it and a buffer that holds the bytes, an
// equal tensor is rebuilt: same sizes, strides, dtype, conjugate and negative bits, and the same
// alignment modulo kViewAlignment (kernels may choose by alignment, and results would differ in
// bits) as far as the storage and the buffer have it: a GPU's blocks have 512, a CPU's 64.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include <vector>

#include "traces/trace.h"

namespace stowage::executor {

struct SavedView {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // elements
  std::int64_t offset = 0;            // elements
  caffe2::TypeMeta dtype;
  c10::DispatchKeySet keys;
  ByteRange range;  // the bytes of the storage that it touches, see trace.h

  // Only for tensors for which is_plain() holds.
  [[nodiscard]] static SavedView of(const at::Tensor& tensor);

  // The view over `buffer`, which holds the storage's bytes from `buffer_begin` on. Shares the
  // buffer's storage. Throws c10::Error when the buffer does not hold all of `range`.
  [[nodiscard]] at::Tensor over(const c10::Storage& buffer, Bytes buffer_begin) const;
};

// Strided, with a storage, of PyTorch's own plain implementation and a dtype that the trace knows:
// all of it is its bytes and what SavedView holds, so it can be copied byte for byte. Quantized,
// sparse, nested, opaque, named, batched and undefined tensors are not; they stay.
[[nodiscard]] bool is_plain(const at::Tensor& tensor);

// The trace's name of it; `other` for none of PyTorch's known ones.
[[nodiscard]] DType dtype_of(at::ScalarType dtype);

}  // namespace stowage::executor
