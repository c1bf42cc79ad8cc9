// What must be equal for a plan made on one recording to be applied to another step: the sequence
// of packs, and the run options that change kernels and bytes.
#pragma once

#include <optional>
#include <string>

#include "traces/trace.h"

namespace stowage {

// "sha256:" + hex over, per pack: site, dtype, shape, strides, storage index; then deterministic,
// dtype, allocator, autocast if there is one, and on a CPU the number of threads. Needs a valid
// trace. Cost: O(saved).
[[nodiscard]] std::string fingerprint(const Trace& trace);

// The first thing in which the fingerprinted parts of `there` (the recording, the plan's trace) and
// `here` differ, such as "pack 17: layers.2.mlp#1 float32 [4,256,1024] there, [8,256,1024] here" or
// "threads: 2 there, 4 here"; nothing when the fingerprints are equal. Run options come first.
[[nodiscard]] std::optional<std::string> first_difference(const Trace& there, const Trace& here);

}  // namespace stowage
