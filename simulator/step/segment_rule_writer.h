// A plan's rules for the segments of a structure.
#pragma once

#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/structure.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Few rules that name the segments of `structure`, in any order: a layer call each, several in a
// row whose names differ in a number alone, or a row from one layer to another; what lies in
// another one is named within it. Their boundaries stay. segments_named()
// (simulator/step/segment_rules.h) gives the segments back. Cost: O(recording + segments^2 + rules
// * calls).
[[nodiscard]] std::vector<RecomputeRule> recompute_rules(const Trace& recording,
                                                         const Structure& structure);

}  // namespace stowage::simulator
