// What a plan says of a step's structure, for one recording.
#pragma once

#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/step.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Errors (bad_input): those of segments_named() (simulator/step/segment_rules.h); those of
// resolve() for rules that recompute. Cost: O(recording).
[[nodiscard]] Result<Structure> structure_of(const Trace& recording, const Plan& plan);

// Few rules, that recompute, that structure_of() makes the ops of `structure` of. They belong ahead
// of all others. Cost: O(saved tensors log saved tensors).
[[nodiscard]] std::vector<SavedRule> op_rules(const Trace& recording, const Structure& structure);

// The structure that a step was unrolled under: its segments and ops that run again.
[[nodiscard]] Structure structure_of(const Step& step);

// The step under it. Errors: those of structure_of() and of the other unroll(), these at the rule
// that names what they are about.
[[nodiscard]] Result<Step> unroll(const Trace& recording, const Plan& plan);

}  // namespace stowage::simulator
