// The meaning of a trace: everything that the simulator and the planner rely on without looking.
#pragma once

#include <cstdint>
#include <string>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage {

// A recorded step saves at a site once. A step with a structure saves there in each part of the
// batch, and again where a layer is run again.
enum class Sites : std::uint8_t { unique, repeated };

// Checks columns of equal length, ids in range, sizes and times sane and their sums within int64,
// the order of events and their agreement with storages, saved tensors and unpacks both ways, the
// live bytes against the allocator's counter, phases, parents, and the calibration. The rules are
// listed in docs/trace-format.md. The first violation is the error (bad_input); its pointer names
// the row, e.g. "/storages/free_event/17". Cost: O(trace).
[[nodiscard]] Status validate(const Trace& trace, const std::string& file,
                              Sites sites = Sites::unique);

}  // namespace stowage
