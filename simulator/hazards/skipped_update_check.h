// Whether the period of a step that skips its update fits the one that takes it: then any number of
// periods of both kinds may follow each other.
//
// Why. In every mix each stay's instructions come in their order: what is ahead of the section is
// one and the same in both, and each of the two ends what the other would have. Compute waits for
// all copies of a stay until its end, and the next stay of its tenant, or the next user of its host
// slot, comes behind that. So no pair of accesses can be unordered that is ordered within each
// kind, and none that one kind alone does not have can find other bytes: both end with the same
// stays on the device, and whatever is newer there than at home is stored by both.
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"

namespace stowage::simulator {

struct StayAtEnd {
  StayId stay;
  bool is_awaited = false;  // compute has waited for its load
  bool operator==(const StayAtEnd&) const = default;
};

// What a period leaves on the device for the next one, in order of rows. Precondition:
// find_hazards() is empty. Cost: O(stays + instructions).
[[nodiscard]] std::vector<StayAtEnd> stays_at_end(const StepIndex& index, const Schedule& schedule);

// The hazards of `without` itself, or its differences from `schedule`: other tenants, homes or
// stays, other instructions ahead of the section (simulator/step/update_section.h), other stays on
// the device at the end, an update of the step before that nobody stores. Empty = proven.
// Precondition: find_hazards(taken, schedule) is empty. Cost: that of find_hazards().
[[nodiscard]] std::vector<Hazard> check_skipped_update(const StepIndex& taken,
                                                       const Schedule& schedule,
                                                       const StepIndex& skipped,
                                                       const Schedule& without);

}  // namespace stowage::simulator
