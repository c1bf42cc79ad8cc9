#include "report/less_memory.h"

#include "report/words.h"

namespace stowage::report {

std::string less_memory(const simulator::ReplayResult& resident,
                        const simulator::ReplayResult& planned, ByteUnits units,
                        const std::string& than) {
  const Bytes less = resident.peak_requested - planned.peak_requested;
  if (less <= 0) return {};
  const std::string text =
      format_bytes(less, units) + " less " + (than.empty() ? "" : than + " ") + "cost ";
  const Nanoseconds longer = planned.step_ns - resident.step_ns;
  if (longer <= 0) return text + "no time";
  return text + format_time(longer) + " (" + relative(planned.step_ns, resident.step_ns) + ")";
}

}  // namespace stowage::report
