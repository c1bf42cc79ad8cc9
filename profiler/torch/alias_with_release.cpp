#include "profiler/torch/alias_with_release.h"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <utility>

#include "executor/saved_view.h"

namespace stowage::profiler {

namespace {

struct Alias {
  at::Tensor original;
  std::function<void()> on_release;
};

void release(void* context) {
  const std::unique_ptr<Alias> alias(static_cast<Alias*>(context));
  alias->on_release();
}

}  // namespace

at::Tensor alias_with_release(const at::Tensor& tensor, std::function<void()> on_release) {
  const c10::Storage& storage = tensor.storage();
  auto alias = std::make_unique<Alias>(Alias{tensor, std::move(on_release)});
  c10::DataPtr data(storage.mutable_data(), alias.release(), &release, storage.device());
  const c10::Storage own(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(data),
      /*allocator=*/nullptr, /*resizable=*/false));
  return executor::SavedView::of(tensor).over(own, 0);
}

}  // namespace stowage::profiler
