// The period of a step that skips its update, behind an overflow, made of the one that takes it.
//
// Whether a step updates is known at its update alone, so both periods have the same tenants and
// homes, stays of the same numbers, and the same instructions ahead of the section
// (simulator/step/update_section.h). What stands in the section moves to its *tail*, ahead of the
// first anchor behind it, mostly step_end; and both end with the same stays on the device:
// - a stay that begins in the section for the update alone is left out (Stay::is_left_out);
// - one that begins there and goes on,
//   over the step's end or to a use behind the section,
//   is loaded in the tail;
// - one that would end in the section ends in the tail, awaited first if its load is under way;
// - a store that only carries what the update writes is left out: the home has the bytes.
// In the tail: awaits of what is under way, stores, evictions, loads, awaits of those; among equals
// as in the section.
//
// Any number of periods of both kinds may follow each other: ahead of the section the executor
// runs the instructions of the period that takes the update, waiting at an evict for the store of
// the step before if there was one. simulator/hazards/skipped_update_check.h proves it.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "simulator/step/step_template.h"
#include "simulator/step/structure.h"
#include "traces/result.h"

namespace stowage::simulator {

struct SkippedUpdate {
  Step step;  // refers to the recording
  Schedule schedule;
  // So many of its first instructions are those of the period that takes the update; the tail and
  // what stands behind it follow.
  std::size_t shared = 0;
};

// Of the schedule of a step with this structure. Precondition: the schedule has no hazards
// (simulator/hazards). Errors (bad_input): those of unroll() and of leave_out_update().
// Cost: that of unroll() and of a StepIndex.
[[nodiscard]] Result<SkippedUpdate> skip_update(const StepIndex& taken, const Schedule& schedule,
                                                Structure structure = {},
                                                const std::vector<StepTemplate>& templates = {});

// The schedule alone, for the index of the step without its update. Errors (bad_input): `skipped`
// is of another step; a tenant of what the update makes.
// Cost: O(events + instructions + uses of all tenants).
[[nodiscard]] Result<Schedule> leave_out_update(const StepIndex& taken, const Schedule& schedule,
                                                const StepIndex& skipped);

}  // namespace stowage::simulator
