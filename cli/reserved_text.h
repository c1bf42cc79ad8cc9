// What a step reserves, in the words of all verbs: planned memory beside the caching allocator's.
#pragma once

#include "cli/text_table.h"
#include "report/simulation.h"
#include "simulator/plan/plan.h"

namespace stowage::cli {

// Two rows (what, resident, replayed, change), that of the plan's own memory first. None where the
// trace's device has no such counter.
void add_reserved(const report::Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table);

// Of a trace whose device has no reserved bytes, in planned memory: what is missing above. Else "".
[[nodiscard]] std::string no_reserved_text(const Trace& trace, simulator::PlacementMode placement);

}  // namespace stowage::cli
