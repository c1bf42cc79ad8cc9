// assemble(): joins the passes of one recording into a Trace. The passes are joined on their common
// events (raw_pass.h); the join is checked event by event, and a recording whose passes did not do
// the same thing is refused.
#pragma once

#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

// A feature of traces of steps that ran out of memory with everything kept: lifetimes and peak were
// derived from the offload_all pass (resident_pass.h), and there is no clean step time.
inline constexpr const char* kOffloadedRecording = "offloaded_recording";

// Times: with a timing pass as device_times.h has it; else gaps between events are the median over
// the structure steps, scaled so that their sum is the clean step time. Natural frees and releases
// come from the offload_all pass.
// Errors (bad_input): passes that differ (names the first difference), live bytes that are not the
// allocator's counter, a structure peak that is not the clean pass's; (environment) device_times().
// Cost: O(records).
[[nodiscard]] Result<Trace> assemble(const RawRecording& recording);

}  // namespace stowage::profiler
