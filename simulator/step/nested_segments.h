// Segments that lie within others: the outer one runs again ahead of the inner one, which begins in
// that run and gives up what it saves there as it did in forward.
#pragma once

#include <vector>

#include "simulator/step/recomputed_step.h"
#include "simulator/step/segments.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// recompute() where layer calls may lie within each other, at any depth. The innermost ones are
// written first; what they are given is then saved by the one around them like all else in it,
// given up and saved again by its run. So runs follow each other in time and none lies within
// another. Segments come in order of their begin in forward, outer ones ahead of inner ones. Errors
// (bad_input): two overlap and neither lies within the other, or both are the same calls; an inner
// one reads what the outer one made and does not give it; a chain of ops is packed within nested
// ones; what recompute() and SegmentFinder::find() refuse. Cost: that of recompute() and a
// SegmentFinder for each depth.
[[nodiscard]] Result<RecomputedStep> recompute_nested(const Trace& recording,
                                                      std::vector<Segment> segments);

}  // namespace stowage::simulator
