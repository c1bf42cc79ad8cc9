#include "executor/host_copy.h"

namespace stowage::executor {

HostCopy::HostCopy(Device& device, const at::Tensor& tensor)
    : device_(&device), view_(SavedView::of(tensor)) {
  if (bytes() == 0) return;
  block_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes()));
  const auto* const source = static_cast<const std::byte*>(tensor.storage().data());
  device_->wait_blocking(
      device_->copy_async(CopyLane::d2h, block_.get(), source + view_.range.begin, bytes()));
}

at::Tensor HostCopy::load(std::int64_t tag) const {
  const at::Tensor buffer = device_->allocate_buffer(bytes(), tag);
  if (bytes() > 0) {
    device_->wait_blocking(
        device_->copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), block_.get(), bytes()));
  }
  return view_.over(buffer.storage(), view_.range.begin);
}

}  // namespace stowage::executor
