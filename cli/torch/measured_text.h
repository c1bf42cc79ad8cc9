// Lines about a measured run that `execute` and `verify` share.
#pragma once

#include <string>

#include "cli/torch/measured_run.h"
#include "simulator/plan/plan.h"

namespace stowage::cli {

// Active and reserved peaks beside their predictions, what PyTorch's caching allocator would
// reserve where the plan has memory of its own (-1: not known), and what was taken from the driver
// and pinned after the first step; empty on a device without such counters.
[[nodiscard]] std::string counters_text(const MeasuredRun& run,
                                        const simulator::Predicted& predicted,
                                        Bytes caching_reserved);

// What came of planned memory; empty without.
[[nodiscard]] std::string memory_text(const MeasuredRun& run);

// What parameters that stream moved in a step; empty when none does.
[[nodiscard]] std::string parameters_text(const MeasuredRun& run);

// How many ranks there are and how often each reduces in a step; empty without --distributed.
[[nodiscard]] std::string ranks_text(const MeasuredRun& run);

// " (ratio 1.023, outside of ±2.0 %)", measured to predicted and the interval of that
// (simulator::step_interval()); empty when nothing was predicted. `interval` 0: it is not spoken
// of.
[[nodiscard]] std::string ratio_text(Nanoseconds measured, Nanoseconds predicted,
                                     Nanoseconds interval);

}  // namespace stowage::cli
