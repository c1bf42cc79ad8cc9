// The JSON form of a trace in memory (docs/trace-format.md).
#pragma once

#include <string>
#include <string_view>

#include "traces/result.h"
#include "traces/trace.h"
#include "traces/trace_limits.h"

namespace stowage {

// Parses and validates; `file` is what errors name. Total: any bytes give a trace or an error
// (bad_input) with the JSON pointer of the culprit. Unknown keys and columns are ignored.
// Cost: O(size), no document tree; the stack does not grow with the nesting, and memory is bounded
// by `limits`, which are for tests.
[[nodiscard]] Result<Trace> trace_from_json(std::string_view text, const std::string& file,
                                            const TraceLimits& limits = {});

// Compact JSON, the same bytes for the same trace. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string trace_to_json(const Trace& trace);

}  // namespace stowage
