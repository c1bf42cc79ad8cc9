// What a step reserves, in the words of all verbs: planned memory beside the caching allocator's.
#pragma once

#include <string>

#include "report/answers/text_table.h"
#include "report/simulation.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "traces/size_text.h"

namespace stowage::report {

// Rows (what, resident, replayed, change): planned memory and the fewest bytes that any placement
// takes, the caching allocator; that of the plan's own memory first. None where the
// trace's device has no such counter.
void add_reserved(const Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table, ByteUnits units = ByteUnits::decimal);

// ", but .. are reserved: a card of that size does not hold it": a budget on other bytes than
// reserved ones is no statement about a card. Empty where no more than the budget is reserved.
[[nodiscard]] std::string over_the_card(const simulator::PlanBudget& budget,
                                        const simulator::ReplayResult& result, ByteUnits units);

}  // namespace stowage::report
