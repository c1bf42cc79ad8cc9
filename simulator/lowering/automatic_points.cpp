#include "simulator/lowering/automatic_points.h"

#include <algorithm>

#include "simulator/lowering/automatic_releases.h"
#include "simulator/lowering/automatic_starts.h"
#include "simulator/schedule/saved_tensor_tenant.h"
#include "traces/result.h"

namespace stowage::simulator {

LatestReleases latest_releases(const StepIndex& index, const std::vector<Offload>& offloads,
                               const std::vector<Reload>& reloads) {
  const Trace& trace = index.trace();
  const Place end{EventId(index.event_count() - 1), Side::before};
  LatestReleases latest;
  latest.own.assign(offloads.size(), end);
  latest.any.assign(offloads.size(), end);
  for (const Reload& reload : reloads) {
    Place& own = latest.own[reload.offload];
    own = std::min(own, await_place(trace, reload.unpacks));
  }
  const auto& unpacks = trace.unpacks.event;  // in order of event
  for (std::size_t o = 0; o < offloads.size(); ++o) {
    const Place start = store_place(trace, offloads[o].saved);
    const auto next = std::upper_bound(unpacks.begin(), unpacks.end(), start.event);
    if (next != unpacks.end()) latest.any[o] = {*next, Side::before};
    const auto& writes = index.writes_of(offloads[o].storage);
    const auto write = std::upper_bound(writes.begin(), writes.end(), start.event);
    if (write != writes.end()) {
      const Place ahead{index.previous_anchor(EventId(write->index() - 1)), Side::after};
      latest.own[o] = std::min(latest.own[o], ahead);
      latest.any[o] = std::min(latest.any[o], ahead);
    }
    latest.any[o] = std::min(latest.any[o], latest.own[o]);
  }
  return latest;
}

void place_movement(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
                    Movement& movement) {
  STOWAGE_ASSERT(fixed.release.size() == movement.offloads.size());
  STOWAGE_ASSERT(fixed.start_reload.size() == movement.reloads.size());
  const std::vector<Bytes> delta = place_releases(index, fixed, budget, movement);
  place_starts(index, fixed, budget, delta, movement);
}

}  // namespace stowage::simulator
