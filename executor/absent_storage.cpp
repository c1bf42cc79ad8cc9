#include "executor/absent_storage.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace stowage::executor {

// A storage can be told to throw at every access, and nothing public takes that back. The standard
// lets an explicit instantiation name a private member; where LibTorch renames it, this fails to
// compile.
namespace storage_access {

struct ThrowsTag {
  using Member = bool c10::StorageImpl::*;
  friend Member member_of(ThrowsTag);
};
template <class Tag, typename Tag::Member kMember>
struct Expose {
  friend typename Tag::Member member_of(Tag) { return kMember; }
};
template struct Expose<ThrowsTag, &c10::StorageImpl::throw_on_immutable_data_ptr_>;

}  // namespace storage_access

namespace {

// In the place of memory.
void delete_filler(void* filler) {
  delete static_cast<Filler*>(filler);
}

}  // namespace

void make_present(c10::StorageImpl& storage, c10::DataPtr memory) {
  storage.*member_of(storage_access::ThrowsTag{}) = false;
  storage.set_data_ptr_noswap(std::move(memory));
}

void make_absent(c10::StorageImpl& storage, const std::string& text) {
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, storage.device()));
  storage.release_data_and_set_meta_custom_data_ptr_error_msg_(text);
}

bool is_absent(const c10::StorageImpl& storage) {
  return storage.*member_of(storage_access::ThrowsTag{});
}

at::Tensor without_memory(const at::Tensor& like, at::ScalarType dtype, const std::string& text,
                          Filler fill) {
  const at::Tensor form = at::empty_like(like, like.options().device(at::kMeta).dtype(dtype));
  auto filler = std::make_unique<Filler>(std::move(fill));
  c10::DataPtr memory(nullptr, filler.release(), &delete_filler, like.device());
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t{}, static_cast<std::int64_t>(form.storage().nbytes()),
      std::move(memory), /*allocator=*/nullptr, /*resizable=*/false);
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(text);
  const c10::DispatchKeySet keys(like.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
  auto impl =
      c10::make_intrusive<c10::TensorImpl>(c10::Storage(std::move(storage)), keys, form.dtype());
  impl->set_sizes_and_strides(form.sizes(), form.strides());
  return at::Tensor(std::move(impl));
}

bool has_no_memory_yet(c10::StorageImpl& storage) {
  return storage._mutable_data_ptr_no_checks().get_deleter() == &delete_filler;
}

bool begins_as_zeros(c10::StorageImpl& storage) {
  return !*static_cast<Filler*>(storage._mutable_data_ptr_no_checks().get_context());
}

void fill_home(c10::StorageImpl& storage, std::byte* home) {
  const auto& fill = *static_cast<Filler*>(storage._mutable_data_ptr_no_checks().get_context());
  if (fill) return fill(home);
  std::fill_n(home, storage.nbytes(), std::byte{0});
}

}  // namespace stowage::executor
