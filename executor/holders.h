// Who holds a tensor or its memory, in a process that may have Python's wrappers of them.
#pragma once

#include <c10/core/impl/PyObjectSlot.h>

#include <cstddef>

namespace stowage::executor {

// References to this StorageImpl or TensorImpl of which `use_count` is known, less Python's wrapper
// of it where nobody in Python has that any more: LibTorch keeps it, and it keeps a reference (an
// untyped_storage() or grad that was looked at once).
template <class Impl>
[[nodiscard]] std::size_t holders(Impl& impl, std::size_t use_count) {
  return use_count - (impl.pyobj_slot()->has_unique_reference() ? 1 : 0);
}

}  // namespace stowage::executor
