// What the device worked on and when, piece by piece: which ops and which kernels a range of time
// holds, and how long they take within it.
#pragma once

#include <string>
#include <vector>

#include "gui/model/simulated.h"
#include "gui/model/step_picture.h"
#include "gui/model/view_state.h"

namespace stowage::gui {

enum class WorkGroup : std::uint8_t {
  op,      // the outermost one
  kernel,  // kernels, copies and memsets of the device
};

// All of one name within a range.
struct WorkRow {
  std::string name;        // "aten::mm"; "(outside of ops)"
  std::int64_t count = 0;  // ops, or kernels; one that the range cuts counts
  Nanoseconds time = 0;    // on the device, within the range
  Selection longest;       // the one that takes the most of it, in the step that is shown
};

struct WorkTable {
  std::vector<WorkRow> rows;  // longest first, then by name
  std::int64_t count = 0;     // their sums
  Nanoseconds time = 0;
};

// Times on the device: as they were measured where the recording has them; of a planned step from
// when compute is free for a kernel and it is launched until it is done, in which the short pause
// behind the start of a copy lies too; on a CPU, whose ops are the compute itself, those of the
// outermost ops, without stalls. Pieces on several streams may overlap: each counts in full.
class DeviceWork {
 public:
  DeviceWork() = default;
  // `shown`: a picture of the step, of the recorded one with `recorded`. Cost: O(trace).
  DeviceWork(const Simulated& simulated, const StepPicture& shown, bool recorded);

  // On a CPU there are none.
  [[nodiscard]] bool has_kernels() const { return has_kernels_; }
  // Cost: O(pieces in the range + rows log rows).
  [[nodiscard]] WorkTable within(const TimeRange& range, WorkGroup by) const;

 private:
  struct Piece {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
    OpId op;                // outermost; none: outside of ops
    std::int32_t gpu = -1;  // row of the trace's table; -1: it is the op's own
  };
  void add_recorded(const Trace& trace);
  void add_planned(const Trace& trace, const Simulated& simulated);
  void add_ops(const StepPicture& shown);
  [[nodiscard]] StringId name_of(const Piece& piece, WorkGroup by) const;

  std::shared_ptr<const void> owner_;  // of what `trace_` is
  const Trace* trace_ = nullptr;
  std::vector<Piece> pieces_;       // in order of begin
  std::vector<Nanoseconds> until_;  // by piece: the latest end of it and those ahead of it
  bool has_kernels_ = false;
};

}  // namespace stowage::gui
