// What a step reserves, in the words of all verbs: planned memory beside the caching allocator's.
#pragma once

#include "cli/console.h"
#include "cli/text_table.h"
#include "report/simulation.h"
#include "simulator/plan/plan.h"

namespace stowage::cli {

// Two rows (what, resident, replayed, change), that of the plan's own memory first. None where the
// trace's device has no such counter.
void add_reserved(const report::Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table);

// In planned memory, of a trace whose device has no reserved bytes: says what is missing above.
void note_no_reserved(const Trace& trace, simulator::PlacementMode placement,
                      const Console& console);

}  // namespace stowage::cli
