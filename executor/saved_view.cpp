#include "executor/saved_view.h"

#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <typeinfo>

#include "traces/result.h"

namespace stowage::executor {

namespace {

// By the numbers of at::ScalarType, which files of PyTorch's hold and so never change.
constexpr std::array kDtypes = {
    DType::uint8,
    DType::int8,
    DType::int16,
    DType::int32,
    DType::int64,
    DType::float16,
    DType::float32,
    DType::float64,
    DType::complex32,
    DType::complex64,
    DType::complex128,
    DType::boolean,
    DType::qint8,
    DType::quint8,
    DType::qint32,
    DType::bfloat16,
    DType::quint4x2,
    DType::quint2x4,
    DType::bits1x8,
    DType::bits2x4,
    DType::bits4x2,
    DType::bits8,
    DType::bits16,
    DType::float8_e5m2,
    DType::float8_e4m3fn,
    DType::float8_e5m2fnuz,
    DType::float8_e4m3fnuz,
    DType::uint16,
    DType::uint32,
    DType::uint64,
    DType::uint1,
    DType::uint2,
    DType::uint3,
    DType::uint4,
    DType::uint5,
    DType::uint6,
    DType::uint7,
    DType::int1,
    DType::int2,
    DType::int3,
    DType::int4,
    DType::int5,
    DType::int6,
    DType::int7,
    DType::float8_e8m0fnu,
    DType::float4_e2m1fn_x2,
};
static_assert(static_cast<std::size_t>(at::ScalarType::Float4_e2m1fn_x2) + 1 == kDtypes.size());

}  // namespace

bool is_plain(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  // A subclass holds more than a view: quantizers, nested sizes, ..
  if (typeid(impl) != typeid(c10::TensorImpl)) return false;
  return !impl.is_python_dispatch() && !impl.has_symbolic_sizes_strides() &&
         impl.named_tensor_meta() == nullptr && !tensor._is_zerotensor() &&
         dtype_of(tensor.scalar_type()) != DType::other;
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
  // A view without elements touches nothing, so its offset may lie anywhere: it keeps it, which
  // whoever saves the view once more sees.
  const Bytes byte_offset = range.size() == 0 ? offset * item : offset * item - buffer_begin;
  STOWAGE_ASSERT(byte_offset % item == 0);
  const Bytes buffer_end = buffer_begin + static_cast<Bytes>(buffer.nbytes());
  TORCH_CHECK(range.size() == 0 || (buffer_begin <= range.begin && range.end <= buffer_end),
              "stowage: a saved tensor lies in bytes ", range.begin, " to ", range.end,
              " of its storage, and only ", buffer_begin, " to ", buffer_end, " were copied");
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(buffer), keys, dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape, strides, byte_offset / item);
  return tensor;
}

DType dtype_of(at::ScalarType dtype) {
  const auto number = static_cast<std::size_t>(dtype);
  return number < kDtypes.size() ? kDtypes[number] : DType::other;
}

}  // namespace stowage::executor
