// When a step touches its model state (parameters and the optimizer's state): what of it that
// streams has to be on the device for, and why some cannot stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/step/anchor.h"
#include "traces/trace.h"

namespace stowage::simulator {

class StepIndex;

// One touch of such a storage: an outermost op that uses it, itself or in an op inside it,
// from op_begin to op_end; a pack of a saved tensor of it; an unpack of one, until the tensor that
// it handed out is gone.
struct ModelStateTouch {
  EventId begin;
  EventId end;
  bool ends_behind = false;  // it is over in the gap behind `end`, not at it
  bool writes = false;
  Place first;  // the last place at which it can be awaited
  Place last;   // the first place behind the touch: where it can go
  PhaseId phase;
  LayerId layer;  // that touches
};

class ModelStateUses {
 public:
  ModelStateUses() = default;
  // Precondition: the index knows its anchors. Cost: O(uses + ops + events + touches log touches).
  explicit ModelStateUses(const StepIndex& index);

  // In order of `begin`; of a storage of another class than parameter and optimizer_state: none.
  [[nodiscard]] const std::vector<ModelStateTouch>& touches_of(StorageId storage) const {
    return touches_[row_of(storage)];
  }

  // Empty for a storage that can stream, else "stays: .." : of another class, not on device 0, not
  // older than the step or freed in it, without bytes, never touched, written elsewhere than
  // between its parameter's parameter_update events, saved by a tensor that outlives
  // the step.
  [[nodiscard]] const std::string& reason_to_stay(StorageId storage) const {
    return reasons_[row_of(storage)];
  }

 private:
  [[nodiscard]] std::size_t row_of(StorageId storage) const {
    return static_cast<std::size_t>(row_[storage.index()]);
  }

  // By storage; all of other classes have row 0.
  std::vector<std::int32_t> row_;
  std::vector<std::vector<ModelStateTouch>> touches_;
  std::vector<std::string> reasons_;
};

}  // namespace stowage::simulator
