// The first step of a process beside the recorded one: what it does to the allocator that later
// steps do not. It makes what stays (workspaces of cuBLAS, the optimizer's state), and now and then
// something that it needs once.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "profiler/assembly/raw_pass.h"

namespace stowage::profiler {

// Storages that exist at the recorded step's begin and at its end: by serial.
[[nodiscard]] std::unordered_set<std::int64_t> lasting_serials(const RawPass& structure);

// A row of RawRecording::setup that only the first step has.
struct FirstStepExtra {
  std::size_t row = 0;
  EventId event;  // of the recorded step: what came last of all that both steps did
};

// The extras in order of rows; events never decrease. Less what lasts, the first step must do the
// recorded step's allocations, by size, with others between; each of the recorded step's is taken
// to be the first one of its size that is left. None: it does not, so nothing is known of the
// order. A gradient that is kept is made where later steps make what they add to it. Cost: O(setup
// + events).
[[nodiscard]] std::optional<std::vector<FirstStepExtra>> first_step_extras(
    const std::vector<RawSetup>& setup, const RawPass& structure);

}  // namespace stowage::profiler
