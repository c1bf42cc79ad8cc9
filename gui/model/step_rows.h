// A recording and the step that a plan makes of it have tables of their own where something runs
// again: which rows of the one are which of the other.
#pragma once

#include <memory>
#include <vector>

#include "gui/model/view_state.h"
#include "simulator/step/step.h"

namespace stowage::gui {

class StepRows {
 public:
  // The recording must outlive it. Cost: O(step).
  explicit StepRows(simulator::Step step);

  [[nodiscard]] const simulator::Step& step() const { return step_; }

  // What is selected in the recording, in the step: of what runs again, the first time. A kernel is
  // the op that launched it. Nothing when the step has no such row.
  [[nodiscard]] Selection in_step(const Selection& recorded) const;
  // The other way. Nothing for what stands for a segment's begin or end alone.
  [[nodiscard]] Selection in_recording(const Selection& of_step) const;

  // The op is one that runs again; the op of forward that it is the same as, none of others.
  [[nodiscard]] bool is_again(OpId op) const {
    return step_.pass(op) == simulator::Pass::recompute;
  }
  [[nodiscard]] OpId original_of(OpId op) const;

 private:
  simulator::Step step_;
  // By row of the recording, the first of the step; none: it has none.
  std::vector<EventId> events_;
  std::vector<OpId> ops_;
  std::vector<StorageId> storages_;
  std::vector<SavedId> saved_;
};
using StepRowsPtr = std::shared_ptr<const StepRows>;

// The same without a map, of a step that is the recording.
[[nodiscard]] Selection in_step(const StepRowsPtr& rows, const Selection& recorded);
[[nodiscard]] Selection in_recording(const StepRowsPtr& rows, const Selection& of_step);

}  // namespace stowage::gui
