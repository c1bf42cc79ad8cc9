// HostCopy: a saved tensor that left the device at once, into host memory of its own, copied while
// the CPU waits. What `offload_all` is made of, and the fallback for saved tensors that no plan
// knows.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "executor/device/device.h"
#include "executor/host_pool.h"
#include "executor/saved_view.h"

namespace stowage::executor {

class HostCopy {
 public:
  // Copies the bytes of the view out, into memory of the pool; returns when they are on the host.
  // The tensor, one of the pool's device, may be freed or written afterwards. Precondition:
  // is_plain(tensor). Throws what HostPool::take() throws.
  HostCopy(HostPool& pool, const at::Tensor& tensor);
  // Of a tensor with the same bytes as the one that this slot was copied from; nothing is copied.
  HostCopy(Device& device, std::shared_ptr<const HostPool::Slot> slot, const at::Tensor& tensor);

  // Copies back into a new device buffer with this allocation tag; can be called many times.
  [[nodiscard]] at::Tensor load(std::int64_t tag) const;
  [[nodiscard]] Bytes bytes() const { return view_.range.size(); }
  // Null where there are no bytes.
  [[nodiscard]] const std::shared_ptr<const HostPool::Slot>& slot() const { return slot_; }

 private:
  Device* device_;
  SavedView view_;
  std::shared_ptr<const HostPool::Slot> slot_;
};

}  // namespace stowage::executor
