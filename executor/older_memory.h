// OlderMemory: what is older than a planned step (parameters, inputs, buffers, state of the
// optimizer) and lies where the device's allocator put it, moved into the step's memory and back.
// Tensors stay the same objects, with the same storage object; versions do not change. A pointer
// that somebody took from a tensor does not follow.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

#include "executor/device/device.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

class OlderMemory {
 public:
  explicit OlderMemory(Device& device) : device_(device) {}

  // The storages of these tensors, each once, as far as the memory has a place for one of their
  // size. What they leave goes back to the driver meanwhile, so that the device never has both.
  // Errors, those of StepMemory::take_lasting(): what has moved stays there. Cost: a copy each.
  [[nodiscard]] Status move_in(StepMemory& memory, const std::vector<at::Tensor>& tensors);
  // What lies in `memory`, of these tensors and of those that moved in and are alive: into memory
  // of the device's own allocator. Throws c10::OutOfMemoryError; the rest stays then, and nothing
  // is lost.
  void move_out(const StepMemory& memory, const std::vector<at::Tensor>& tensors);
  // Of the device, that has moved in.
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  void copy(c10::StorageImpl& storage, c10::DataPtr memory);

  Device& device_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> moved_;
  Bytes bytes_ = 0;
};

}  // namespace stowage::executor
