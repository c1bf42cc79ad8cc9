// HostCopy: a saved tensor that left the device at once, in a host block of its own, copied while
// the CPU waits. What `offload_all` is made of, and the fallback for saved tensors that no plan
// knows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

#include "executor/device/device.h"
#include "executor/saved_view.h"

namespace stowage::executor {

class HostCopy {
 public:
  // Copies the bytes of the view out; returns when they are on the host. The tensor may be freed
  // or written afterwards. Precondition: is_plain(tensor). `device` outlives the copy.
  HostCopy(Device& device, const at::Tensor& tensor);

  // Copies back into a new device buffer with this allocation tag; can be called many times.
  [[nodiscard]] at::Tensor load(std::int64_t tag) const;
  [[nodiscard]] Bytes bytes() const { return view_.range.size(); }

 private:
  Device* device_;
  SavedView view_;
  std::unique_ptr<std::byte[]> block_;
};

}  // namespace stowage::executor
