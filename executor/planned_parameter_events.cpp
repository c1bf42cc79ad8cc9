// What PlannedStep::State does for parameters outside of a schedule's instructions.
#include <c10/util/Exception.h>

#include <cstddef>
#include <string>
#include <utility>

#include "executor/planned_state.h"

namespace stowage::executor {

using simulator::AnchorKind;
using simulator::Side;

void PlannedStep::State::adopt() {
  const std::lock_guard lock(mutex_);
  device_.synchronize();  // a stream that is not compute may still use them
  try {
    parameters_.adopt();
  } catch (...) {
    device_.synchronize();  // no copy into the arena outlives it
    throw;
  }
}

void PlannedStep::State::materialise() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!active_,
              "stowage: parameters are brought back between steps only; end or abort the step");
  parameters_.materialise();
}

std::vector<NamedTensor> PlannedStep::State::values() {
  const std::lock_guard lock(mutex_);
  device_.synchronize();
  return parameters_.values();
}

void PlannedStep::State::parameter_update(UpdateEvent event, const at::Tensor& parameter) {
  const std::lock_guard lock(mutex_);
  const AnchorKind kind = event == UpdateEvent::begin ? AnchorKind::parameter_update_begin
                                                      : AnchorKind::parameter_update_end;
  if (event == UpdateEvent::begin) parameters_.note_update(parameter);
  // A trace of an optimizer that does not report its updates.
  if (program_.count(kind) == 0) return;
  device_.check_stream();
  check_not_refused();
  const std::size_t ordinal = counter(kind)++;
  if (report_.on_plan) {
    const std::string number =
        std::string(simulator::name_of(kind)) + " number " + std::to_string(ordinal) + " ";
    if (ordinal >= program_.count(kind)) {
      diverge(number + "was not recorded");
    } else if (const std::string difference =
                   parameters_.update_difference(program_.parameter(kind, ordinal), parameter);
               !difference.empty()) {
      diverge(number + difference);
    }
  }
  run(kind, ordinal, Side::before);
  run(kind, ordinal, Side::after);
}

}  // namespace stowage::executor
