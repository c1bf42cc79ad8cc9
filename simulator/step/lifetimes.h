// When bytes are gone: the one statement of these rules, for all that counts memory or proves that
// nobody uses it too late (docs/simulator.md, "memory"). Bytes go when the schedule lets go of them
// (an eviction) or when the model itself does, whichever is later.
#pragma once

#include <span>

#include "traces/trace.h"

namespace stowage::simulator {

// Until when the model itself holds bytes: the gap behind `event`, ahead of the next event's
// action.
struct Hold {
  EventId event;          // none: it does not hold them
  bool outlives = false;  // longer than the step
};

// A storage that was made in the step: until its natural free.
[[nodiscard]] Hold hold_of(const Trace& trace, StorageId storage);
// What these unpacks handed out, in order; none for no unpack.
[[nodiscard]] Hold hold_of(const Trace& trace, std::span<const UnpackId> unpacks);

enum class Leaving : std::uint8_t { at_eviction, behind_hold, never };

// How bytes go that are evicted at `event`. At its own event a hold is the later one.
[[nodiscard]] constexpr Leaving leaving(const Hold& hold, EventId event) {
  if (hold.outlives) return Leaving::never;
  return hold.event.valid() && hold.event >= event ? Leaving::behind_hold : Leaving::at_eviction;
}

}  // namespace stowage::simulator
