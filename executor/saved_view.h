// SavedView: all of a saved tensor except its bytes. From it and a buffer that holds the bytes, an
// equal tensor is rebuilt: same sizes, strides, dtype, conjugate and negative bits, and the same
// alignment modulo 64 bytes (kernels may choose by alignment, and results would differ in bits).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
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
  // buffer's storage. Precondition: the buffer covers `range`.
  [[nodiscard]] at::Tensor over(const c10::Storage& buffer, Bytes buffer_begin) const;
};

// Strided, with a storage, on a device: what can be copied byte for byte. Sparse, opaque and
// undefined tensors are not; they stay.
[[nodiscard]] bool is_plain(const at::Tensor& tensor);

[[nodiscard]] DType dtype_of(const at::Tensor& tensor);

}  // namespace stowage::executor
