// What PlannedStep::State does for parameters between steps.
#include <c10/util/Exception.h>

#include "executor/planned_state.h"

namespace stowage::executor {

void PlannedStep::State::adopt() {
  const TurnLine::Place place(line_, next_turn());
  device_.synchronize();  // a stream that is not compute may still use them
  try {
    parameters_.adopt();
  } catch (...) {
    device_.synchronize();  // no copy into the arena outlives it
    throw;
  }
}

void PlannedStep::State::materialise() {
  const TurnLine::Place place(line_, next_turn());
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!active_,
                "stowage: parameters are brought back between steps only; end or abort the step");
  }
  parameters_.materialise();
}

std::vector<NamedTensor> PlannedStep::State::values() {
  const TurnLine::Place place(line_, next_turn());
  device_.synchronize();
  return parameters_.values();
}

}  // namespace stowage::executor
