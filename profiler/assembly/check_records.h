// Checks one pass's records before anybody follows a row number in them.
#pragma once

#include <string>

#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"

namespace stowage::profiler {

// The pass runs from step_begin to step_end, every row that a record names exists, and packs,
// unpacks and ops are numbered by their events. `name` is the pass's, for the message. Cost:
// O(records).
[[nodiscard]] Status check_records(const RawPass& pass, const std::string& name);

}  // namespace stowage::profiler
