#include "executor/host_parts.h"

#include <ATen/TensorIterator.h>

#include <algorithm>

namespace stowage::executor {

namespace {

static_assert(kHostPartElements == at::internal::GRAIN_SIZE);

// In an order in which the tensor's memory has no holes. Strides of dimensions of size 1 say
// nothing, and gradients have others there.
bool is_dense_as(const at::Tensor& tensor, const at::Tensor& other) {
  if (!tensor.is_non_overlapping_and_dense() || tensor.sizes() != other.sizes()) return false;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) != 1 && tensor.stride(i) != other.stride(i)) return false;
  }
  return true;
}

bool can_be_divided(const HostTensors& whole) {
  return is_dense_as(whole.weights, whole.weights) && is_dense_as(whole.gradient, whole.weights) &&
         std::all_of(whole.state.begin(), whole.state.end(), [&](const NamedTensor& each) {
           return is_dense_as(each.tensor, whole.weights);
         });
}

}  // namespace

HostParts::HostParts(const HostTensors& whole) : whole_(whole), elements_(whole.weights.numel()) {
  if (elements_ <= kHostPartElements || !can_be_divided(whole)) return;
  count_ = (elements_ + kHostPartElements - 1) / kHostPartElements;
}

HostTensors HostParts::part(std::int64_t number) const {
  return parts(number, number + 1);
}

HostTensors HostParts::parts(std::int64_t begin, std::int64_t end) const {
  if (count_ == 1) return whole_;
  const std::int64_t first = begin * kHostPartElements;
  const std::int64_t size = std::min(end * kHostPartElements, elements_) - first;
  const auto slice = [&](const at::Tensor& tensor) {
    return tensor.as_strided({size}, {1}, tensor.storage_offset() + first);
  };
  HostTensors part{slice(whole_.weights), slice(whole_.gradient), {}};
  part.state.reserve(whole_.state.size());
  for (const NamedTensor& each : whole_.state) {
    part.state.push_back({each.name, slice(each.tensor)});
  }
  return part;
}

}  // namespace stowage::executor
