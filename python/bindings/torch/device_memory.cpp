#include "python/bindings/torch/device_memory.h"

#include <c10/core/CPUAllocator.h>
#ifdef STOWAGE_HAVE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/device.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/torch/tensor_caster.h"

namespace stowage::python {

namespace nb = nanobind;

namespace {

executor::Device& gpu(std::int64_t index) {
#ifdef STOWAGE_HAVE_CUDA
  const auto refuse = [&](std::int64_t other) {
    return Raised(Error{ErrorCode::environment,
                        "the model is on GPU " + std::to_string(index) +
                            ", and this process's steps run on GPU " + std::to_string(other),
                        "", "", "torch.cuda.set_device() ahead of it, and one GPU a process"});
  };
  // Where the first one is made is where all of the process's are.
  if (const std::int64_t current = c10::cuda::current_device(); current != index) {
    throw refuse(current);
  }
  const Result<executor::CudaDevice*> device = executor::cuda_device();
  if (!device) throw Raised(device.error());
  if (const std::int64_t made = (*device)->torch_device().index(); made != index) {
    throw refuse(made);
  }
  return **device;
#else
  throw Raised(Error{ErrorCode::environment,
                     "the model is on GPU " + std::to_string(index) +
                         ", and this package was built beside a torch without CUDA",
                     "", "", "install the package again beside a torch with CUDA"});
#endif
}

}  // namespace

executor::Device& device_of(const std::string& kind, std::int64_t index) {
  if (kind == "cuda") return gpu(index);
  const Result<executor::CpuDevice*> device = executor::cpu_device();
  if (!device) throw Raised(device.error());
  return **device;
}

namespace {

// Storages stay the same objects, so views, ties and wrappers follow; what holds the old address
// itself (a NumPy array over it) does not.
std::int64_t count_in(executor::Device& device, const std::vector<at::Tensor>& tensors) {
  std::int64_t moved = 0;
  if (!device.torch_device().is_cpu()) return moved;
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

nb::dict memory(const executor::Device& device) {
  const executor::MemoryStats stats = device.memory();
  nb::dict figures;
  figures["requested_bytes"] = stats.requested;
  figures["peak_requested_bytes"] = stats.peak_requested;
  return figures;
}

}  // namespace

void define_device(nb::module_& module) {
  nb::class_<executor::Device>(module, "Device", "Where a step runs, with its memory counted.")
      .def("count_in", &count_in, nb::arg("tensors"),
           "Moves the bytes of CPU tensors that are older than the device into counted memory; how "
           "many storages moved.")
      .def("memory", &memory, "Requested bytes, now and at their peak.")
      .def("reset_peak", &executor::Device::reset_peak, "The peak is what there is now.");
  module.def("device", &device_of, nb::arg("kind"), nb::arg("index") = 0, nb::rv_policy::reference,
             "The process's own of this kind: from here on its tensors are counted.");
}

}  // namespace stowage::python
