#include "gui/model/trace_data.h"

#include <utility>

#include "simulator/step/unroll.h"

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

TraceData::TraceData(const TracePtr& step, Trace part)
    : trace(std::move(part)),
      index(trace),
      calls(simulator::SegmentFinder(trace).calls()),
      path(step->path),
      sha256(step->sha256),
      machine(step->machine),
      whole(step),
      resident_cached(simulator::replay(index, simulator::resident_schedule(index))),
      resident_placed(simulator::replay(
          index, simulator::resident_schedule(index, simulator::PlacementMode::planned))) {}

Result<TracePtr> in_parts(const TracePtr& data,
                          const std::vector<simulator::Structure::Parts>& parts) {
  if (simulator::is_in_parts(data->trace, parts)) return data;
  const TracePtr& whole = data->whole ? data->whole : data;
  if (parts.empty()) return whole;
  const Result<const Trace*> found = simulator::recording_in_parts(whole->trace, parts);
  if (!found) return found.error();
  return std::make_shared<const TraceData>(whole, **found);
}

TracePtr on_machine(const TraceData& data, const Calibration& calibration, MachineKind machine) {
  Trace copy = data.trace;
  set_calibration(copy, calibration);
  if (data.whole) {
    return std::make_shared<const TraceData>(on_machine(*data.whole, calibration, machine),
                                             std::move(copy));
  }
  return std::make_shared<const TraceData>(std::move(copy), data.path, data.sha256, machine);
}

}  // namespace stowage::gui
