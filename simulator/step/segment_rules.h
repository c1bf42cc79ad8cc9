// What a plan's rules about layer calls say of one recording: the segments that they name.
#pragma once

#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

struct NamedSegment {
  std::string name;  // as a Structure names it
  std::string rule;  // that names it: "/recompute/0/within/1"
};

// Outer ones ahead of inner ones. Errors (bad_input), at "/recompute/N/..": a rule that names no
// layer call (with the nearest one), or none that an earlier rule does not have; one that names a
// call with one of an earlier rule in it, or fewer than "each"; a row that is none; one within
// another that names all of that. Cost: O(recording + rules * calls).
[[nodiscard]] Result<std::vector<NamedSegment>> segments_named(
    const Trace& recording, const std::vector<RecomputeRule>& rules);

}  // namespace stowage::simulator
