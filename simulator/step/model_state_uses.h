// When a step touches its model state (parameters, the optimizer's state, gradients): what of it
// that streams has to be on the device for, and why some cannot stream.
//
// A gradient is two storages: what the step before left behind, which zero_grad frees, and what
// this step makes. The one that is made can leave, the other one is then away as well. Where the
// host does an update in backward there is the one alone.
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
// it handed out is gone. Of a gradient besides: from the op that makes it, which writes it, to
// where autograd first reports that it has been added to, for until then autograd holds it and is
// free to add to it (a tied weight's, a cast's); each further such report; and where ranks have
// reduced it (Step::gradients_reduced_at()).
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

  // In order of `begin`; of a storage of another class than these three: none.
  [[nodiscard]] const std::vector<ModelStateTouch>& touches_of(StorageId storage) const {
    return touches_[row_of(storage)];
  }

  // Empty for a storage that can stream, else "stays: .." : of another class, not on device 0,
  // without bytes, never touched, saved by a tensor that outlives the step. Of parameters and
  // state: not older than the step or freed in it, written elsewhere than between its parameter's
  // parameter_update events. Of gradients: not made in the step or freed in it, not in the place of
  // one as large of the same parameter that the step frees ahead of that and does not use, saved,
  // without a report that it was added to. One that is its parameter's only one can where the host
  // updates that.
  [[nodiscard]] const std::string& reason_to_stay(StorageId storage) const {
    return reasons_[row_of(storage)];
  }

  // Of a gradient that stays: it is its parameter's only one, and but for its end in the step it
  // could leave, for the host to update with it.
  [[nodiscard]] bool is_only_freed(StorageId gradient) const {
    return is_only_freed_[row_of(gradient)];
  }

  // Of a gradient that can leave: the storage that the step before left and this one frees; none
  // where its parameter has no other.
  [[nodiscard]] StorageId previous_of(StorageId gradient) const {
    return previous_[row_of(gradient)];
  }

 private:
  [[nodiscard]] std::size_t row_of(StorageId storage) const {
    return static_cast<std::size_t>(row_[storage.index()]);
  }

  // By storage; all of other classes have row 0.
  std::vector<std::int32_t> row_;
  std::vector<std::vector<ModelStateTouch>> touches_;
  std::vector<std::string> reasons_;
  std::vector<StorageId> previous_;
  std::vector<bool> is_only_freed_;
};

}  // namespace stowage::simulator
