// What of the shortest step the footprints with pins do not see: there what is pinned to leave is
// away for nothing.
#pragma once

#include <vector>

#include "planner/allowed.h"
#include "planner/footprint.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

class PinnedBound {
 public:
  // Precondition: something is pinned. `settled`: of the step with what is pinned to run again;
  // `index`: of the one that bounds are made of, which with `can_run_again` has nothing that runs
  // again. Both must outlive it. Cost: footprints.
  PinnedBound(const simulator::StepIndex& index, const simulator::StepIndex& settled,
              simulator::PeakKind kind, const Allowed& allowed, bool can_run_again);

  // The larger of two bounds for every plan within the budget that has what is pinned: that of all
  // plans where what is pinned to stay does, whatever leaves (planner/bounds.h); and compute, with
  // what is pinned to run again.
  // `left_out`: positions that are not looked at.
  [[nodiscard]] Nanoseconds shortest_step(Bytes budget,
                                          const std::vector<bool>& left_out = {}) const;

 private:
  Footprints may_leave_;
  Nanoseconds least_compute_ = 0;
};

}  // namespace stowage::planner
