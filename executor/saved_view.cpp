#include "executor/saved_view.h"

#include <c10/core/TensorImpl.h>

#include "traces/result.h"

namespace stowage::executor {

bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage() &&
         !tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

SavedView SavedView::of(const at::Tensor& tensor) {
  SavedView view;
  view.shape = tensor.sizes().vec();
  view.strides = tensor.strides().vec();
  view.offset = tensor.storage_offset();
  view.dtype = tensor.dtype();
  view.keys = tensor.key_set();
  view.range = byte_range(view.shape, view.strides, view.offset,
                          static_cast<Bytes>(tensor.dtype().itemsize()));
  return view;
}

at::Tensor SavedView::over(const c10::Storage& buffer, Bytes buffer_begin) const {
  const auto item = static_cast<Bytes>(dtype.itemsize());
  // A view without elements touches nothing; its offset may lie anywhere.
  const Bytes byte_offset = range.size() == 0 ? 0 : offset * item - buffer_begin;
  STOWAGE_ASSERT(byte_offset >= 0 && byte_offset % item == 0);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(buffer), keys, dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape, strides, byte_offset / item);
  return tensor;
}

DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kByte:
      return DType::uint8;
    case at::kChar:
      return DType::int8;
    case at::kShort:
      return DType::int16;
    case at::kInt:
      return DType::int32;
    case at::kLong:
      return DType::int64;
    case at::kHalf:
      return DType::float16;
    case at::kBFloat16:
      return DType::bfloat16;
    case at::kFloat:
      return DType::float32;
    case at::kDouble:
      return DType::float64;
    case at::kComplexFloat:
      return DType::complex64;
    case at::kComplexDouble:
      return DType::complex128;
    case at::kBool:
      return DType::boolean;
    default:
      return DType::other;
  }
}

}  // namespace stowage::executor
