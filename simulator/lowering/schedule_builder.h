// From "what moves and where it leaves and returns" to a Schedule. Every schedule that Stowage
// makes comes out of build_schedule(): it is the one place that orders instructions, adds those
// that follow from the others (start_offload, await, drop), and lays out the host arena.
#pragma once

#include <vector>

#include "simulator/lowering/parameter_stays.h"
#include "simulator/schedule/schedule.h"
#include "simulator/schedule/stay_places.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Offloads in order of their first pack with `release[i]` of offloads[i], reloads in order of their
// first unpack with `start_reload[i]` of reloads[i]; the stays of streamed parameters on the device
// in any order, those of one parameter apart from each other. Host offsets are filled in by the
// builder.
struct Movement {
  std::vector<Offload> offloads;
  std::vector<Reload> reloads;
  std::vector<Place> release;
  std::vector<Place> start_reload;
  std::vector<Stay> stays;
};

// At one place: start_offload, start_store, release, drop, evict, start_reload, start_load, await,
// await_load, so that bytes are given up before others are taken. Among equals in order of rows:
// parameters in order of storages, residencies in order of await_load.
// Precondition (asserted): anchors exist at all places, a release is behind its offload's start, a
// start_reload behind the release and not behind the await; a stay is as parameter_stays.h says.
// Cost: O(events + moved log moved).
[[nodiscard]] Schedule build_schedule(const StepIndex& index, Movement movement);

}  // namespace stowage::simulator
