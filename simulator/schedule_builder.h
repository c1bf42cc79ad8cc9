// From "what moves and where it leaves and returns" to a Schedule. Every schedule that Stowage
// makes comes out of build_schedule(): it is the one place that orders instructions, adds those
// that follow from the others (start_offload, await, drop), and lays out the host arena.
#pragma once

#include <vector>

#include "simulator/schedule.h"
#include "simulator/trace_index.h"

namespace stowage::simulator {

// Where an instruction stands. Ordered by event, then side.
struct Place {
  EventId event;
  Side side = Side::after;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Offloads in order of their first pack with `release[i]` of offloads[i], reloads in order of their
// first unpack with `start_reload[i]` of reloads[i]. Host offsets are filled in by the builder.
struct Movement {
  std::vector<Offload> offloads;
  std::vector<Reload> reloads;
  std::vector<Place> release;
  std::vector<Place> start_reload;
};

// Behind the pack of the offload's first saved tensor.
[[nodiscard]] Place start_of(const Trace& trace, const Offload& offload);
// Ahead of the first unpack; where a reload on demand starts and where every reload is awaited.
[[nodiscard]] Place await_of(const Trace& trace, const Reload& reload);
// Behind the last unpack.
[[nodiscard]] Place drop_of(const Trace& trace, const Reload& reload);

// At one place: before: release, start_reload, await; after: start_offload, release, drop,
// start_reload, so that bytes are given up before others are taken. Among equals in order of rows.
// Precondition (asserted): anchors exist at all places, a release is behind its offload's start, a
// start_reload behind the release and not behind the await. Cost: O(events + moved log moved).
[[nodiscard]] Schedule build_schedule(const TraceIndex& index, Movement movement);

}  // namespace stowage::simulator
