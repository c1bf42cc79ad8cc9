#include "traces/trace.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "traces/enum_names.h"

namespace stowage {
namespace {

template <class Enum>
const char* name_in(Enum value) {
  const auto names = enum_names<Enum>();
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

}  // namespace

void set_calibration(Trace& trace, const Calibration& calibration) {
  trace.calibration = calibration;
  for (std::shared_ptr<const Trace>& each : trace.divided) {
    Trace copy = *each;
    copy.calibration = calibration;
    each = std::make_shared<const Trace>(std::move(copy));
  }
}

const char* name_of(StorageClass value) {
  return name_in(value);
}
const char* name_of(Evidence value) {
  return name_in(value);
}
const char* name_of(PhaseKind value) {
  return name_in(value);
}
const char* name_of(DType value) {
  return name_in(value);
}
const char* name_of(UseMode value) {
  return name_in(value);
}
const char* name_of(EventKind value) {
  return name_in(value);
}
const char* name_of(GpuKind value) {
  return name_in(value);
}

Bytes element_bytes(DType dtype) {
  switch (dtype) {
    default:
      return 1;
    case DType::int16:
    case DType::float16:
    case DType::bfloat16:
    case DType::uint16:
    case DType::bits16:
      return 2;
    case DType::int32:
    case DType::float32:
    case DType::uint32:
    case DType::complex32:
    case DType::qint32:
      return 4;
    case DType::int64:
    case DType::float64:
    case DType::complex64:
    case DType::uint64:
      return 8;
    case DType::complex128:
      return 16;
  }
}

ByteRange byte_range(const std::vector<std::int64_t>& shape,
                     const std::vector<std::int64_t>& strides, std::int64_t offset,
                     Bytes element_size) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return {};
  std::int64_t last = offset;
  for (std::size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  ByteRange range;
  range.begin = offset * element_size / kViewAlignment * kViewAlignment;
  range.end = (last + 1) * element_size;
  return range;
}

ByteRange byte_range(const Trace& trace, TensorId tensor) {
  const std::size_t row = tensor.index();
  const Tensors& tensors = trace.tensors;
  return byte_range(trace.list(tensors.shape[row]), trace.list(tensors.strides[row]),
                    tensors.offset[row], tensors.item_bytes[row]);
}

}  // namespace stowage
