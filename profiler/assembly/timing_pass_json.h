// A timing pass on its way from the process that recorded it: columns of numbers.
#pragma once

#include <string>

#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"

namespace stowage::profiler {

// What a light pass has: no uses, no views, nothing of what was alive at begin.
[[nodiscard]] std::string timing_pass_to_json(const TimingPass& timing);

// Error (internal): text that timing_pass_to_json() did not write.
[[nodiscard]] Result<TimingPass> timing_pass_from_json(const std::string& text);

}  // namespace stowage::profiler
