// What a plan's rules about layer calls say of one recording: the segments that they name, and the
// rules for segments.
#pragma once

#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/segments.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// As a Structure names them, outer ones ahead of inner ones. Errors (bad_input), at
// "/recompute/N/..": a rule that names no layer call (with the nearest one); a run that is none.
// Cost: O(recording + rules * calls).
[[nodiscard]] Result<std::vector<std::string>> segments_named(
    const Trace& recording, const std::vector<RecomputeRule>& rules);

// Few rules that name the segments of `structure`, in any order: a layer call each, several in a
// row whose names differ in a number alone, or a row from one layer to another; what lies in
// another one is named within it. Their boundaries stay. Cost: O(recording + segments^2 + rules *
// calls).
[[nodiscard]] std::vector<RecomputeRule> recompute_rules(const Trace& recording,
                                                         const Structure& structure);

// The calls, of these, that a segment runs one after the other: "layers.0..layers.3" has four.
// Empty for a segment that they do not have.
[[nodiscard]] std::vector<SegmentFinder::Named> calls_in(
    const std::vector<SegmentFinder::Named>& calls, const std::string& segment);

}  // namespace stowage::simulator
