#include "report/answers/reserved_rows.h"

#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::report {

void add_reserved(const Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table, ByteUnits units) {
  if (!simulation.reserved || !simulation.resident_reserved) return;
  const Reserved& before = *simulation.resident_reserved;
  const Reserved& after = *simulation.reserved;
  const auto planned = [&] {
    table.row({"reserved, planned memory", format_bytes(before.planned.bytes, units),
               format_bytes(after.planned.bytes, units),
               relative(after.planned.bytes, before.planned.bytes)});
    table.row({"no placement takes less than", format_bytes(before.planned.lower_bound, units),
               format_bytes(after.planned.lower_bound, units),
               relative(after.planned.lower_bound, before.planned.lower_bound)});
  };
  const bool is_planned = placement == simulator::PlacementMode::planned;
  if (is_planned) planned();
  table.row({"reserved, caching allocator", format_bytes(before.caching, units),
             format_bytes(after.caching, units), relative(after.caching, before.caching)});
  if (!is_planned) planned();
}

std::string over_the_card(const simulator::PlanBudget& budget,
                          const simulator::ReplayResult& result, ByteUnits units) {
  if (!budget.device || budget.on == simulator::PeakKind::reserved) return "";
  if (result.peak_reserved <= *budget.device) return "";
  return ", but " + exact_bytes(result.peak_reserved, units) +
         " are reserved: a card of that size does not hold it";
}

}  // namespace stowage::report
