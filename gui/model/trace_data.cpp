#include "gui/model/trace_data.h"

#include <utility>

namespace stowage::gui {

TraceData::TraceData(Trace loaded, std::string loaded_from, std::string hash,
                     MachineKind loaded_machine)
    : trace(std::move(loaded)),
      index(trace),
      calls(simulator::SegmentFinder(trace).calls()),
      path(std::move(loaded_from)),
      sha256(std::move(hash)),
      machine(loaded_machine),
      resident_cached(simulator::replay(index, simulator::resident_schedule(index))),
      resident_placed(simulator::replay(
          index, simulator::resident_schedule(index, simulator::PlacementMode::planned))) {}

TracePtr on_machine(const TraceData& data, const Calibration& calibration, MachineKind machine) {
  Trace copy = data.trace;
  set_calibration(copy, calibration);
  return std::make_shared<const TraceData>(std::move(copy), data.path, data.sha256, machine);
}

}  // namespace stowage::gui
