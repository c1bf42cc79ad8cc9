#include "cli/reserved_text.h"

namespace stowage::cli {

void note_no_reserved(const Trace& trace, simulator::PlacementMode placement,
                      const Console& console) {
  if (trace.setup.size() > 0 || placement == simulator::PlacementMode::caching) return;
  console.note(
      "the trace's device (" + trace.env.device +
      ") has no reserved bytes: what planned memory takes there is not predicted, its active "
      "bytes are");
}

}  // namespace stowage::cli
