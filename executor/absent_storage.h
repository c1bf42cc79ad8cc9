// A storage without memory that throws at every access, on the CPU, ahead of any kernel: what is
// away from the device while a plan has it, and a tensor of zeros that nobody has made yet.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <string>

namespace stowage::executor {

// Gives its memory up; from then on every access throws c10::Error with this text.
void make_absent(c10::StorageImpl& storage, const std::string& text);
// The other way: this is its memory from now on.
void make_present(c10::StorageImpl& storage, c10::DataPtr memory);

// Zeros in the form of `like` (sizes, strides where these are dense, dtype, device) without memory:
// has_no_memory_yet() until make_present() or make_absent(). Until then an access throws that text.
[[nodiscard]] at::Tensor zeros_without_memory(const at::Tensor& like, const std::string& text);
[[nodiscard]] bool has_no_memory_yet(c10::StorageImpl& storage);

}  // namespace stowage::executor
