// Chooses where storages leave and return when the plan leaves it open ("auto").
//
// Release: the D2H queue is simulated alone on the times of the resident step; a storage leaves at
// the first anchor at which its copy is done, at the latest at the first unpack after its pack.
// With a budget: when an allocation would exceed it before that, the oldest pending storages leave
// at the last anchor ahead of the allocation, and compute waits there for their copies.
//
// Reload: backward scan in order of first unpack on the one H2D queue: latest start
// L[i] = min(need[i], L[i+1]) - transfer[i]; the reload starts at the last anchor at or before
// L[i], behind its release. With a budget it starts later, at the first anchor from which memory up
// to its unpack leaves room, if need be on demand. Starts follow the order of first unpacks.
//
// A copy on the compute stream or a blocking one gains nothing from running early: released at
// once, reloaded on demand. Cost: O((events + moved) log events).
#pragma once

#include <optional>
#include <vector>

#include "simulator/lowering/schedule_builder.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// What the plan fixed; absent = automatic. Fixed places lie within [store_place, latest release]
// and at or before await_place; a fixed reload that lies ahead of its release is moved behind it.
struct FixedPoints {
  std::vector<std::optional<Place>> release;       // one per offload
  std::vector<std::optional<Place>> start_reload;  // one per reload
};

// The last place at which an offload may be released: ahead of its own first unpack (`own`), or of
// the step's first unpack after its pack; step_end without one; in any case ahead of the next write
// into its storage. `reloads` are those of the schedule.
struct LatestReleases {
  std::vector<Place> own;
  std::vector<Place> any;
};
[[nodiscard]] LatestReleases latest_releases(const StepIndex& index,
                                             const std::vector<Offload>& offloads,
                                             const std::vector<Reload>& reloads);

// Fills in `release` and `start_reload` of a movement whose offloads and reloads are given.
// `budget`: on requested bytes; what automatic points stay within as far as they can.
void place_movement(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
                    Movement& movement);

}  // namespace stowage::simulator
