// One pin as a user writes it on a line, as rules of a plan (planner/pins.h).
#pragma once

#include <string>
#include <vector>

#include "planner/pins.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::planner {

// [saved:]SITE=keep|offload|recompute, layer:LAYER=recompute (it runs again),
// params:LAYER=keep|stream|forward|backward, optimizer:LAYER=keep|stream|host,
// gradients:LAYER=keep|host. Names are patterns, as in a plan. Errors: usage.
[[nodiscard]] Result<simulator::Plan> pin_from_text(const std::string& text);

// Rules that are pinned together, and where they are from.
struct PinSource {
  simulator::Plan rules;
  std::string file;    // a plan's; empty: of an option
  std::string option;  // "--pin a#0=keep"
};

// joined_rules() of all, whatever the plans are for, each read against the recording (in the
// micro-batches that they name) for itself. Errors: Pins::make()'s, in the file, or (usage) behind
// the option's text; likewise two sources that decide differently about one tensor or layer, or
// micro-batches that were not recorded.
[[nodiscard]] Result<simulator::Plan> join_pins(const simulator::StepIndex& recorded,
                                                const std::vector<PinSource>& sources);

}  // namespace stowage::planner
