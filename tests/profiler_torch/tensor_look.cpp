#include "tests/profiler_torch/tensor_look.h"

#include <algorithm>

#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage::testing {

TensorLook look_at(const at::Tensor& tensor) {
  TensorLook look;
  look.sizes = tensor.sizes().vec();
  look.strides = tensor.strides().vec();
  look.dtype = tensor.scalar_type();
  look.conjugate = tensor.is_conj();
  look.negative = tensor.is_neg();
  look.zero = tensor._is_zerotensor();
  if (tensor.numel() == 0 || look.zero) return look;
  look.alignment = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64;
  const auto item = tensor.itemsize();
  std::vector<std::int64_t> places;
  for (std::int64_t n = 0; n < tensor.numel(); ++n) {
    std::int64_t rest = n;
    std::int64_t place = 0;
    for (std::size_t d = look.sizes.size(); d-- > 0;) {
      place += rest % look.sizes[d] * look.strides[d];
      rest /= look.sizes[d];
    }
    places.push_back(place);
  }
  const std::int64_t last = *std::max_element(places.begin(), places.end());
  const std::vector<char> all =
      fetch(hand_device(), tensor.const_data_ptr(), static_cast<std::size_t>((last + 1) * item));
  for (const std::int64_t place : places) {
    const auto from = all.begin() + place * item;
    look.bits.insert(look.bits.end(), from, from + item);
  }
  return look;
}

}  // namespace stowage::testing
