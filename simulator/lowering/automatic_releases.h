// The first half of place_movement(): where storages and updated parameters leave. How it chooses:
// simulator/lowering/automatic_points.h.
#pragma once

#include <optional>
#include <vector>

#include "simulator/lowering/automatic_points.h"

namespace stowage::simulator {

// Fills in `release` and moves the `evict` of stays with a store behind the copy. Returns, with a
// budget, the requested bytes as changes by event, one entry more than events (what outlives the
// step goes there): moved storages leave at their releases, reload buffers are there from their
// first unpack on, stays from their start, or from their await while they have none.
// Cost: O((events + moved) log events).
std::vector<Bytes> place_releases(const StepIndex& index, const FixedPoints& fixed,
                                  std::optional<Bytes> budget, Movement& movement);

// The time that a copy takes while compute is busy, which it mostly is.
[[nodiscard]] Nanoseconds expected_ns(const Calibration& link, const LinkCurve& curve, Bytes bytes);

}  // namespace stowage::simulator
