// Stays of one tenant between which it would not be away: they are one.
#pragma once

#include "simulator/lowering/movement.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Puts stays together where a wanted load lies before or where the stay ahead of it ends at the
// earliest, and removes tenants that never leave, with a note. Stays whose load is open are left
// alone. True when something changed.
bool merge_touching(const StepIndex& index, Movement& movement);

// The same where stays touch as they are placed now; all else stays open to another placement.
bool merge_where_placed(const StepIndex& index, Movement& movement);

// The same, with everything fixed as it is placed now.
void merge_placed(const StepIndex& index, Movement& movement);

}  // namespace stowage::simulator
