// What two plans decide about the same layers and sites.
#pragma once

#include <vector>

#include "report/diff.h"
#include "simulator/plan/plan.h"

namespace stowage::report {

// For every layer and site that a rule of either plan names, numbers one by one ("layers.3" and
// "layers.3.attn#*" of "layers.[0-3]" and "layers.[0-3].attn#*"), what becomes of it under `plan`:
// "keep", "offload", "recompute by ops", "recompute as a layer", "recompute with layers.3"; of a
// layer that its sites decide about, all of that ("offload, recompute by ops"). A rule that also
// asks for a class, an op or a size decides "in part", and the next one about the rest. No
// recording is looked at, so a pattern stands for the sites that no earlier rule takes. Facts of
// the section "decisions". Patterns of more than 1,000 names stay as they are; behind 5,000 names
// no more are listed. Cost: O(names * (names + rules)).
[[nodiscard]] std::vector<Fact> decisions_of(const simulator::Plan& plan,
                                             const simulator::Plan& other);

}  // namespace stowage::report
