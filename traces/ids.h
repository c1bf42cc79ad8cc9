// Row numbers as distinct types: an OpId does not convert into a StorageId. Ids are dense, 0-based
// row numbers of a Trace's (or a Schedule's) tables; -1 means "none".
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stowage {

template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}

  [[nodiscard]] constexpr bool valid() const { return value >= 0; }
  // Row number for indexing; only for valid ids.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using StringId = Id<struct StringTag>;    // Trace::strings
using ListId = Id<struct ListTag>;        // Trace::lists
using LayerId = Id<struct LayerTag>;      // Trace::layers
using PhaseId = Id<struct PhaseTag>;      // Trace::phases
using OpId = Id<struct OpTag>;            // Trace::ops
using TensorId = Id<struct TensorTag>;    // Trace::tensors
using StorageId = Id<struct StorageTag>;  // Trace::storages
using EventId = Id<struct EventTag>;      // Trace::events
using SavedId = Id<struct SavedTag>;      // Trace::saved; equals the pack's ordinal in the step
using UnpackId = Id<struct UnpackTag>;    // Trace::unpacks; equals the unpack's ordinal
using TenantId = Id<struct TenantTag>;    // Schedule::tenants
using StayId = Id<struct StayTag>;        // Schedule::stays

}  // namespace stowage

template <class Tag>
struct std::hash<stowage::Id<Tag>> {
  std::size_t operator()(stowage::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
