// Rules by layer that say of each storage whether it leaves the device, resolved against a trace,
// and back: what the `optimizer` and `gradients` parts of a plan have in common.
#pragma once

#include <string>
#include <vector>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The first whose pattern names the layer or one around it decides; none: it stays.
struct LeavingRule {
  std::string layer;
  bool leaves = false;
  bool may_match_nothing = false;  // it is about something else, too, that says so
};

// For messages.
struct LeavingWords {
  std::string what;     // the layers have: "optimizer state"
  std::string pointer;  // of the rules
};

// By storage. `layers`: by storage the layer that it counts for, none where the rules are not about
// it. Errors (bad_input): a pattern that does not parse, or that matches no layer of those (with
// the nearest one); the pointer is "<pointer>/<rule>/layer". Cost: O(rules * layers + storages).
[[nodiscard]] Result<std::vector<bool>> resolve_leaving(const Trace& trace,
                                                        const std::vector<LayerId>& layers,
                                                        const std::vector<LeavingRule>& rules,
                                                        const LeavingWords& words);

// Rules that resolve to exactly these, short: a layer for all that is inside it, a range for layers
// that differ in a number. Empty where nothing leaves. Precondition (asserted): rules can say it,
// that is, all of one layer is treated alike.
[[nodiscard]] std::vector<LeavingRule> to_leaving_rules(const Trace& trace,
                                                        const std::vector<LayerId>& layers,
                                                        const std::vector<bool>& leaves);

}  // namespace stowage::simulator
