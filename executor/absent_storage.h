// A storage without memory that throws at every access, on the CPU, ahead of any kernel: what is
// away from the device while a plan has it, and a tensor that nobody has made yet.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <cstddef>
#include <functional>
#include <string>

namespace stowage::executor {

// Gives its memory up; from then on every access throws c10::Error with this text.
void make_absent(c10::StorageImpl& storage, const std::string& text);
// make_absent() was called, or it has no memory yet.
[[nodiscard]] bool is_absent(const c10::StorageImpl& storage);
// The other way: this is its memory from now on.
void make_present(c10::StorageImpl& storage, c10::DataPtr memory);

// Writes the bytes that a tensor begins with.
using Filler = std::function<void(std::byte* home)>;

// A tensor in the form of `like` (sizes, strides where these are dense, device), of that dtype,
// without memory: has_no_memory_yet() until make_present() or make_absent(). Until then an access
// throws that text. Who gives it a home fills that with `fill`; none: with zeros.
[[nodiscard]] at::Tensor without_memory(const at::Tensor& like, at::ScalarType dtype,
                                        const std::string& text, Filler fill = {});
[[nodiscard]] bool has_no_memory_yet(c10::StorageImpl& storage);
// Whether fill_home() writes zeros. Precondition: it has no memory yet.
[[nodiscard]] bool begins_as_zeros(c10::StorageImpl& storage);
// Precondition: it has none.
void fill_home(c10::StorageImpl& storage, std::byte* home);

}  // namespace stowage::executor
