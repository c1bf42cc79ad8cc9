// What a step reserves, in the words of all verbs: planned memory beside the caching allocator's.
#pragma once

#include "report/answers/text_table.h"
#include "report/simulation.h"
#include "simulator/plan/plan.h"
#include "traces/size_text.h"

namespace stowage::report {

// Two rows (what, resident, replayed, change), that of the plan's own memory first. None where the
// trace's device has no such counter.
void add_reserved(const Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table, ByteUnits units = ByteUnits::decimal);

}  // namespace stowage::report
