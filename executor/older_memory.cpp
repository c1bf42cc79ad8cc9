#include "executor/older_memory.h"

#include <utility>

#include "executor/saved_view.h"

namespace stowage::executor {

namespace {

// Without looking: a storage that is away throws.
const void* data_of(c10::StorageImpl& storage) {
  return storage._mutable_data_ptr_no_checks().get();
}

// So much may be on the device twice while storages move.
constexpr Bytes kMostCached = Bytes{256} << 20;

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return is_plain(tensor) ? tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()
                          : nullptr;
}

}  // namespace

void OlderMemory::copy(c10::StorageImpl& storage, c10::DataPtr memory) {
  // On the compute stream, as is what frees the old memory and may use it again.
  device_.copy_on_compute(memory.get(), data_of(storage), static_cast<Bytes>(storage.nbytes()));
  storage.set_data_ptr_noswap(std::move(memory));
}

Status OlderMemory::move_in(StepMemory& memory, const std::vector<at::Tensor>& tensors) {
  device_.release_cache();
  Bytes cached = 0;
  for (const at::Tensor& tensor : tensors) {
    c10::StorageImpl* const storage = storage_of(tensor);
    // Away, of another device, or not an allocation of its own.
    if (storage == nullptr || tensor.device() != device_.torch_device()) continue;
    const void* const data = data_of(*storage);
    if (data == nullptr || device_.allocation_serial(data) < 0 || memory.has(data)) continue;
    Result<c10::DataPtr> place = memory.take_lasting(static_cast<Bytes>(storage->nbytes()));
    if (!place) return place.error();
    if (!*place) continue;
    copy(*storage, std::move(place).value());
    moved_.emplace_back(c10::intrusive_ptr<c10::StorageImpl>(
        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)));
    bytes_ += static_cast<Bytes>(storage->nbytes());
    cached += static_cast<Bytes>(storage->nbytes());
    if (cached < kMostCached) continue;
    device_.release_cache();
    cached = 0;
  }
  device_.release_cache();
  return Unit{};
}

void OlderMemory::move_out(const StepMemory& memory, const std::vector<at::Tensor>& tensors) {
  const auto leave = [&](c10::StorageImpl& storage) {
    if (!memory.has(data_of(storage))) return;
    const at::Tensor buffer =
        device_.allocate_buffer(static_cast<Bytes>(storage.nbytes()), kOffPlanTag);
    copy(storage,
         std::move(buffer.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
  };
  for (const auto& each : moved_) {
    if (const c10::intrusive_ptr<c10::StorageImpl> storage = each.lock()) leave(*storage);
  }
  for (const at::Tensor& tensor : tensors) {
    if (c10::StorageImpl* const storage = storage_of(tensor)) leave(*storage);
  }
  moved_.clear();
  bytes_ = 0;
}

}  // namespace stowage::executor
