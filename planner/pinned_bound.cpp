#include "planner/pinned_bound.h"

#include <algorithm>

#include "planner/bounds.h"
#include "planner/pins.h"
#include "simulator/machine/rest_gain.h"

namespace stowage::planner {
namespace {

// What is pinned to leave may.
Allowed loosened(Allowed allowed, bool can_run_again) {
  const Pins& pins = *allowed.pinned;
  allowed.offload = allowed.offload || pins.offloads();
  allowed.parameters = allowed.parameters || pins.decides(Moves::parameters);
  allowed.optimizer = allowed.optimizer || pins.decides(Moves::optimizer_state);
  allowed.gradients = allowed.gradients || pins.decides(Moves::gradients);
  allowed.recompute = can_run_again;
  allowed.pinned = pins.that_keep();
  return allowed;
}

}  // namespace

PinnedBound::PinnedBound(const simulator::StepIndex& index, const simulator::StepIndex& settled,
                         simulator::PeakKind kind, const Allowed& allowed, bool can_run_again)
    : may_leave_(index, kind, loosened(allowed, can_run_again)) {
  const Ppm boost = simulator::rest_gain(index.trace().calibration).boost;
  least_compute_ = static_cast<Nanoseconds>(Wide{settled.compute_until().back()} * kPpm / boost);
}

Nanoseconds PinnedBound::shortest_step(Bytes budget, const std::vector<bool>& left_out) const {
  return std::max(least_compute_,
                  planner::shortest_step(may_leave_, budget, kAllPositions, left_out));
}

}  // namespace stowage::planner
