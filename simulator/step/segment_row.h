// A row of layer calls by its ends: "layers.0..layers.3".
#pragma once

#include <string>
#include <vector>

#include "simulator/step/segments.h"
#include "traces/result.h"

namespace stowage::simulator {

// The calls, of these, that a segment runs one after the other: "layers.0..layers.3" has four, and
// a layer call by itself is one. Empty for a segment that they do not have. Cost: O(calls).
[[nodiscard]] std::vector<SegmentFinder::Named> calls_in(
    const std::vector<SegmentFinder::Named>& calls, const std::string& segment);

// Why `row` has no two calls or more of one of these places (bad_input, without a pointer): no
// names of two layers; patterns; a name that no call has, with the nearest; the ends stand in
// another order, lie in two places, or one lies within another call. `all`: of the recording, where
// the places have some of them. Cost: O(calls * length of the names).
[[nodiscard]] Error why_no_row(const std::vector<std::vector<SegmentFinder::Named>>& places,
                               const std::vector<SegmentFinder::Named>& all,
                               const std::string& row);

// That no call of `calls` has this name (bad_input, without a pointer): with the nearest, that it
// lies outside of the segments that a rule is within, or how often the step calls that layer.
[[nodiscard]] Error names_no_call(const std::vector<SegmentFinder::Named>& calls,
                                  const std::vector<SegmentFinder::Named>& all,
                                  const std::string& name);

}  // namespace stowage::simulator
