#include "cli/reserved_text.h"

#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::cli {

void add_reserved(const report::Simulation& simulation, simulator::PlacementMode placement,
                  TextTable& table) {
  if (!simulation.reserved || !simulation.resident_reserved) return;
  const report::Reserved& before = *simulation.resident_reserved;
  const report::Reserved& after = *simulation.reserved;
  const auto planned = [&] {
    table.row({"planned memory", format_bytes(before.planned.bytes),
               format_bytes(after.planned.bytes),
               report::relative(after.planned.bytes, before.planned.bytes)});
  };
  const bool is_planned = placement == simulator::PlacementMode::planned;
  if (is_planned) planned();
  table.row({is_planned ? "caching allocator" : "peak reserved", format_bytes(before.caching),
             format_bytes(after.caching), report::relative(after.caching, before.caching)});
  if (!is_planned) planned();
}

void note_no_reserved(const Trace& trace, simulator::PlacementMode placement,
                      const Console& console) {
  if (trace.setup.size() > 0 || placement == simulator::PlacementMode::caching) return;
  console.note(
      "the trace's device (" + trace.env.device +
      ") has no reserved bytes: what planned memory takes there is not predicted, its active "
      "bytes are");
}

}  // namespace stowage::cli
