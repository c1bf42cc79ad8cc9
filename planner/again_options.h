// The option `again`: what a storage holds, and costs, at least in any step that computes it again.
#pragma once

#include <optional>
#include <vector>

#include "planner/option.h"
#include "simulator/step/op_spans.h"
#include "simulator/step/step_index.h"

namespace stowage::planner {

class Footprints;

// Whatever runs again: the storage is on the device until the model itself lets go of it
// in forward, and from each unpack to the release of what that handed out. And to be there at an
// unpack without a copy, the outermost op that made it has run again, at least up to where it is
// saved first.
class AgainOptions {
 public:
  // Of no storage when it is not `allowed`. Cost: O(recording). Both must outlive it.
  AgainOptions(const Footprints& footprints, bool allowed);

  // None: no layer that can be called again (simulator/step/segments.h) saves it nor can ops make
  // it again (simulator/step/op_chains.h), it is older than the step, or the model holds it beyond
  // the step.
  [[nodiscard]] std::optional<Option> of(StorageId storage) const;

 private:
  void find_able();
  [[nodiscard]] Nanoseconds least_work(StorageId storage) const;

  const Footprints& footprints_;
  const simulator::StepIndex& index_;
  const simulator::OpSpans spans_;
  std::vector<bool>
      is_able_;  // by saved tensor: a callable layer saves it, or ops make it; or empty
};

}  // namespace stowage::planner
