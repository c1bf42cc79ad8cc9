#include "python/bindings/torch/device_memory.h"

#include <c10/core/CPUAllocator.h>
#include <nanobind/stl/vector.h>
#include <stowage/device.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/torch/tensor_caster.h"

namespace stowage::python {

namespace nb = nanobind;

executor::Device& cpu() {
  const Result<executor::CpuDevice*> device = executor::cpu_device();
  if (!device) throw Raised(device.error());
  return **device;
}

namespace {

// Storages stay the same objects, so views, ties and wrappers follow; what holds the old address
// itself (a NumPy array over it) does not.
std::int64_t count_in(const std::vector<at::Tensor>& tensors) {
  executor::Device& device = cpu();
  std::int64_t moved = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !tensor.has_storage() || !tensor.is_cpu()) continue;
    c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
    const void* const bytes = storage.data();
    if (storage.nbytes() == 0 || bytes == nullptr || device.allocation_serial(bytes) >= 0) continue;
    c10::DataPtr counted = c10::GetCPUAllocator()->allocate(storage.nbytes());
    std::memcpy(counted.get(), bytes, storage.nbytes());
    storage.set_data_ptr_noswap(std::move(counted));
    ++moved;
  }
  return moved;
}

nb::dict memory() {
  const executor::MemoryStats stats = cpu().memory();
  nb::dict figures;
  figures["requested_bytes"] = stats.requested;
  figures["peak_requested_bytes"] = stats.peak_requested;
  return figures;
}

}  // namespace

void define_device(nb::module_& module) {
  module.def(
      "use_cpu", [] { static_cast<void>(cpu()); },
      "From here on the process's CPU tensors are counted.");
  module.def(
      "count_in", &count_in, nb::arg("tensors"),
      "Moves the bytes of CPU tensors that are older than use_cpu() into counted memory; how "
      "many storages moved.");
  module.def("memory", &memory, "Requested bytes of CPU tensors, now and at their peak.");
  module.def(
      "reset_peak", [] { cpu().reset_peak(); }, "The peak is what there is now.");
}

}  // namespace stowage::python
