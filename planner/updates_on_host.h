// The step whose parameters the host updates, all that it can. What a parameter, its gradient and
// its state hold on the device is least at every moment where the host updates it, so no mix of
// both has a lower floor (but where the host cannot update some of a layer whose state could
// stream); one may be faster (planner/mixed_updates.h).
#pragma once

#include <memory>
#include <optional>

#include "planner/best_plan.h"
#include "planner/bounds.h"
#include "planner/climber.h"
#include "planner/mixed_bound.h"
#include "planner/mixed_updates.h"
#include "planner/pinned_bound.h"
#include "planner/planner.h"
#include "planner/structure_pool.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

class UpdatesOnHost {
 public:
  // All but what is pinned to the device. Null where the request does not allow it, the host can
  // update nothing (DeviceUpdates) beside what is pinned to it, or the link is not calibrated.
  // `can_run_again`: floor and bound are of that, too. `bounding`: of the step that the bounds of
  // plans with all updates on the device are of. All must outlive it. Cost: an unroll(), a
  // StepIndex, footprints.
  [[nodiscard]] static std::unique_ptr<UpdatesOnHost> make(const simulator::StepIndex& recorded,
                                                           const simulator::StepIndex& bounding,
                                                           const PlanRequest& request,
                                                           const StructurePool& pool,
                                                           bool can_run_again, BestPlan& best);

  [[nodiscard]] Climber& climber() { return climber_; }
  // Of the plans with these updates on the host, whatever runs again and moves besides.
  [[nodiscard]] const MemoryFloor& floor() const { return floor_; }
  // Likewise. What matters below `known`: where it is not below that, anything from it on.
  [[nodiscard]] Nanoseconds shortest_step(Bytes budget, Nanoseconds known) const;
  // Whatever the budget, of a step that takes `resident` with nothing moved: of all plans in which
  // the host updates some parameters.
  [[nodiscard]] Nanoseconds shortest(Nanoseconds resident) const;
  // Of every plan within the budget, whoever updates what. `of_both`: the lesser of what plans take
  // at least with all updates on the device, and with all on the host. `on_device`: as in
  // MixedBound.
  [[nodiscard]] Nanoseconds least_of_all(const MixedBound::Bound& on_device, Bytes budget,
                                         Nanoseconds of_both) const;
  [[nodiscard]] const MixedBound& mixed_bound() const { return mixed_bound_; }
  // What looks for plans in which the host updates a part; null where there is none to choose.
  [[nodiscard]] MixedUpdates* mixed() { return mixed_.get(); }

 private:
  // `settled`: of the step where nothing runs again but what is pinned; `updated`: where nothing
  // does.
  UpdatesOnHost(std::shared_ptr<const simulator::StepIndex> settled,
                std::shared_ptr<const simulator::StepIndex> updated, MixedBound mixed_bound,
                const PlanRequest& request, const StructurePool& pool, bool can_run_again,
                BestPlan& best);

  Climber climber_;
  std::shared_ptr<const simulator::StepIndex> updated_;
  std::optional<Footprints> any_structure_;  // where some can run again
  std::optional<PinnedBound> of_pins_;       // where something is pinned
  MemoryFloor floor_;
  Nanoseconds shortest_ = 0;
  const MixedBound mixed_bound_;
  std::unique_ptr<MixedUpdates> mixed_;
};

// The recording says when its parameters are updated, so that the host might.
[[nodiscard]] bool has_updates(const Trace& recording);

}  // namespace stowage::planner
