// What a plan says of a step's structure, for one recording.
#pragma once

#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/step.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// What the plan runs in more than one part of the batch.
[[nodiscard]] std::vector<Structure::Parts> parts_of(const Plan& plan);

// Error (bad_input): the plan says that it is for another fingerprint than this recording's.
[[nodiscard]] Status check_fingerprint(const Plan& plan, const Trace& recording);

// Rules about sites and segments are of the step in the plan's micro-batches. Errors (bad_input):
// those of recording_in_parts(), and of segments_named() (simulator/step/segment_rules.h); those of
// resolve() for rules that recompute. Cost: O(recording).
[[nodiscard]] Result<Structure> structure_of(const Trace& recording, const Plan& plan);

// Few rules, that recompute, that structure_of() makes the ops of `structure` of. They belong ahead
// of all others. Cost: O(saved tensors log saved tensors).
[[nodiscard]] std::vector<SavedRule> op_rules(const Trace& recording, const Structure& structure);

// The structure that a step was unrolled under: its parts, segments and ops that run again.
[[nodiscard]] Structure structure_of(const Step& step);

// The step under it. Errors: those of check_fingerprint(), structure_of() and of the other
// unroll(), these at the rule that names what they are about.
[[nodiscard]] Result<Step> unroll(const Trace& recording, const Plan& plan);

}  // namespace stowage::simulator
