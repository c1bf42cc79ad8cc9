#include "executor/unmade_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "executor/saved_view.h"

namespace stowage::executor {

namespace {

c10::StorageImpl& storage_behind(const at::Tensor& state) {
  return *state.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

}  // namespace

at::Tensor unmade_state(const NamedTensor& parameter, at::ScalarType dtype, const std::string& name,
                        Filler fill) {
  return without_memory(parameter.tensor, dtype,
                        "stowage: optimizer state " + parameter.name + "." + name +
                            " has no memory yet: no plan and no step has made it",
                        std::move(fill));
}

Filler fill_with(double number, const at::Tensor& like, at::ScalarType dtype) {
  if (number == 0 && !std::signbit(number)) return {};
  const std::int64_t count =
      static_cast<std::int64_t>(
          at::empty_like(like, like.options().device(at::kMeta).dtype(dtype)).storage().nbytes()) /
      static_cast<std::int64_t>(c10::elementSize(dtype));
  return [=](std::byte* home) {
    const at::NoGradGuard no_graph;
    at::from_blob(home, {count}, at::TensorOptions(dtype)).fill_(number);
  };
}

bool is_unmade(const at::Tensor& state) {
  return is_plain(state) && has_no_memory_yet(storage_behind(state));
}

void give_memory(const at::Tensor& state) {
  c10::StorageImpl& storage = storage_behind(state);
  const at::Tensor memory =
      at::empty({static_cast<std::int64_t>(storage.nbytes())}, state.options().dtype(at::kByte));
  make_present(storage,
               std::move(memory.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
}

}  // namespace stowage::executor
