// How long a step takes at least for what the host updates.
#pragma once

#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

// No step of this one (or of it with segments that run again), whatever moves besides, is shorter,
// where compute takes `compute_time` parts of a million of its recorded time; 0 where the host
// updates nothing. A gradient is stored once it is there, one after the other, then updated with,
// one after the other; each parameter comes back once. So of any gradients that are there from some
// time on, all copies and one update follow it, or one copy and all updates. And compute is slower
// while the link moves bytes, or waits instead. Precondition: the link is calibrated. Cost:
// O(storages + updates log updates).
[[nodiscard]] Nanoseconds shortest_with_host_updates(const simulator::StepIndex& index,
                                                     Ppm compute_time);

}  // namespace stowage::planner
