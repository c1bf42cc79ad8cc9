// Saved tensors as tenants. One tenant is one copy out of a range of one storage: it serves the
// saved tensors that lie in it, and its made stay is the storage itself. Each of its other stays is
// one copy back, for some of their unpacks.
//
// What this kind asks of instructions: the store is behind (`after`) the pack of the first saved
// tensor; a load is behind the made stay's evict; the await is not behind the place ahead of the
// first unpack; the evict is behind the last one.
#pragma once

#include <span>

#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {

// Behind the first pack.
[[nodiscard]] Place store_place(const Trace& trace, std::span<const SavedId> saved);
// Ahead of the first unpack; where a load on demand starts and where every load is awaited.
[[nodiscard]] Place await_place(const Trace& trace, std::span<const UnpackId> unpacks);
// Behind the last unpack.
[[nodiscard]] Place evict_place(const Trace& trace, std::span<const UnpackId> unpacks);

}  // namespace stowage::simulator
