// What a step reserves, in the words of all verbs: planned memory beside the caching allocator's.
#pragma once

#include "report/answers/text_table.h"
#include "report/simulation.h"
#include "simulator/plan/plan.h"
#include "traces/size_text.h"

namespace stowage::report {

// Rows (what, resident, replayed, change): planned memory and the fewest bytes that any placement
// takes, the caching allocator; that of the plan's own memory first. None where the
// trace's device has no such counter.
void add_reserved(const Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table, ByteUnits units = ByteUnits::decimal);

}  // namespace stowage::report
