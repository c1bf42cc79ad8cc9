// A loaded trace with all that is computed of it once. Immutable and shared: views and background
// jobs hold it by pointer, so a document may go on to another trace while they finish.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/model/plan_decisions.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::gui {

// What the link and the device are taken to be.
enum class MachineKind : std::uint8_t {
  recorded,  // the calibration of the recording
  assumed,   // somebody changed it: predictions are of a machine that was not measured
};

struct TraceData {
  // Cost: O(trace), and two replays of the step in which nothing moves.
  TraceData(Trace loaded, std::string loaded_from, std::string hash,
            MachineKind loaded_machine = MachineKind::recorded);
  // `part` of step.trace.divided.
  TraceData(const std::shared_ptr<const TraceData>& step, Trace part);
  TraceData(const TraceData&) = delete;
  TraceData& operator=(const TraceData&) = delete;

  const Trace trace;
  const simulator::StepIndex index;  // refers to `trace`
  const LayerCalls calls;            // what could run again in backward
  const std::string path;            // as it was opened
  const std::string sha256;          // of the file, "sha256:.."; for the plan's `for`
  const MachineKind machine;
  // The step with all of the batch at once, where this is it in micro-batches; else null. Plans are
  // for the file, so for that.
  const std::shared_ptr<const TraceData> whole;
  // Nothing moves, no hooks run: in PyTorch's allocator, and in planned memory.
  const simulator::ReplayResult resident_cached;
  const simulator::ReplayResult resident_placed;

  // What a plan for the file says it is for.
  [[nodiscard]] const std::string& fingerprint() const {
    return whole ? whole->trace.fingerprint : trace.fingerprint;
  }
  // The step at once: what a budget's percentage is of.
  [[nodiscard]] const simulator::ReplayResult& at_once(simulator::PlacementMode placement) const {
    return whole ? whole->resident(placement) : resident(placement);
  }
  [[nodiscard]] const simulator::ReplayResult& resident(simulator::PlacementMode placement) const {
    return placement == simulator::PlacementMode::planned ? resident_placed : resident_cached;
  }
};
using TracePtr = std::shared_ptr<const TraceData>;

// The step in these micro-batches; it itself, or of the file that it is of. Errors: those of
// recording_in_parts(). Cost: that of a TraceData, but for it itself and the whole.
[[nodiscard]] Result<TracePtr> in_parts(const TracePtr& data,
                                        const std::vector<simulator::Structure::Parts>& parts);

// The same step on a link and device with this calibration. Cost: a copy of the trace.
[[nodiscard]] TracePtr on_machine(const TraceData& data, const Calibration& calibration,
                                  MachineKind machine);

}  // namespace stowage::gui
