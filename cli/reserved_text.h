// What a verb says where planned memory is asked for and cannot be predicted.
#pragma once

#include "cli/console.h"
#include "simulator/plan/plan.h"
#include "traces/trace.h"

namespace stowage::cli {

// In planned memory, of a trace whose device has no reserved bytes: says what is missing in the
// answer.
void note_no_reserved(const Trace& trace, simulator::PlacementMode placement,
                      const Console& console);

}  // namespace stowage::cli
