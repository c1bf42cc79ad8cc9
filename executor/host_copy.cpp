#include "executor/host_copy.h"

#include <utility>

#include "executor/device/needed_wait.h"

namespace stowage::executor {

HostCopy::HostCopy(HostPool& pool, const at::Tensor& tensor)
    : device_(&pool.device()), view_(SavedView::of(tensor)) {
  if (bytes() == 0) return;
  slot_ = std::make_shared<const HostPool::Slot>(pool.take(bytes()));
  const auto* const source = static_cast<const std::byte*>(tensor.storage().data());
  const CopyTicket ticket =
      device_->copy_async(CopyLane::d2h, slot_->data(), source + view_.range.begin, bytes());
  if (needed(Wait::host_copy_out)) device_->wait_blocking(ticket);
}

HostCopy::HostCopy(Device& device, std::shared_ptr<const HostPool::Slot> slot,
                   const at::Tensor& tensor)
    : device_(&device), view_(SavedView::of(tensor)), slot_(std::move(slot)) {}

at::Tensor HostCopy::load(std::int64_t tag) const {
  const at::Tensor buffer = device_->allocate_buffer(bytes(), tag);
  if (bytes() > 0) {
    const CopyTicket ticket =
        device_->copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), slot_->data(), bytes());
    if (needed(Wait::host_copy_in)) device_->wait_blocking(ticket);
  }
  return view_.over(buffer.storage(), view_.range.begin);
}

}  // namespace stowage::executor
