#include "executor/host_copy.h"

#include "executor/device/needed_wait.h"

namespace stowage::executor {

HostCopy::HostCopy(Device& device, const at::Tensor& tensor)
    : device_(&device), view_(SavedView::of(tensor)) {
  if (bytes() == 0) return;
  block_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes()));
  const auto* const source = static_cast<const std::byte*>(tensor.storage().data());
  const CopyTicket ticket =
      device_->copy_async(CopyLane::d2h, block_.get(), source + view_.range.begin, bytes());
  if (needed(Wait::host_copy_out)) device_->wait_blocking(ticket);
}

at::Tensor HostCopy::load(std::int64_t tag) const {
  const at::Tensor buffer = device_->allocate_buffer(bytes(), tag);
  if (bytes() > 0) {
    const CopyTicket ticket =
        device_->copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), block_.get(), bytes());
    if (needed(Wait::host_copy_in)) device_->wait_blocking(ticket);
  }
  return view_.over(buffer.storage(), view_.range.begin);
}

}  // namespace stowage::executor
