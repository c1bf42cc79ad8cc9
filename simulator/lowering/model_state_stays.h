// When the model state that streams is on the device: its uses put together into stays, those of
// parameters as shards and stream mode ask for.
//
// A *visit* is what one shard does in one phase. A storage that a layer of another shard uses too
// (a tied weight) takes part in that shard's visit with those uses, so that it can leave in
// between. In a visit each storage has one span, from its first touch to its last. Where no anchor
// lies between two spans they are one.
#pragma once

#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Where the host's updates may start: behind the last touch of the parameter and of its gradient.
// Precondition: the step is without these updates on the device (Structure::host_updates).
// Cost: O(storages + touches).
class HostUpdatePlaces {
 public:
  HostUpdatePlaces() = default;  // of none
  HostUpdatePlaces(const StepIndex& index, const std::vector<bool>& updated_on_host);
  // Of such a parameter, or of its gradient; kNoPosition of every other storage.
  [[nodiscard]] PeriodPosition of(StorageId storage) const {
    return place_.empty() ? kNoPosition : place_[storage.index()];
  }

 private:
  std::vector<PeriodPosition> place_;  // by storage
};

// Tenants in order of storages, the stays of each together. Loads are open or where `prefetch` has
// them, possibly ahead of where the stay ahead ends (simulator/lowering/touching_stays.h); a stay
// with a store ends anywhere behind the last use. Notes: parameters of a shard that stay. Cost:
// O(touches log touches + layers * depth).
// What the host updates leaves behind backward at the latest, whatever its shard does, and comes
// back behind its update.
[[nodiscard]] Movement parameter_stays(const StepIndex& index, const ParameterDecisions& decisions,
                                       const HostUpdatePlaces& updates = {});

// The same of the optimizer's state, whose loads are open: each piece has one stay a phase that
// uses it, around its update; that of a parameter that the host updates has none.
[[nodiscard]] Movement optimizer_state_stays(const StepIndex& index,
                                             const OptimizerDecisions& decisions);

// The same of gradients: made in their first visit and stored behind it, then loaded for each
// further one (of the next micro-batch, of the update). Those that the host reads are among them,
// whatever is decided.
[[nodiscard]] Movement gradient_stays(const StepIndex& index, const GradientDecisions& decisions,
                                      const HostUpdatePlaces& updates = {});

}  // namespace stowage::simulator
