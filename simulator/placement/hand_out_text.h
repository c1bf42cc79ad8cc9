// What was not as planned when memory was handed out, for people.
#pragma once

#include <string>
#include <vector>

#include "simulator/placement/hand_out_server.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Each that a report names, by the ops that allocate ("aten::mm in layers.3.mlp is kept longer than
// planned: .."), those of one kind and name together with how often. `trace`: of the step that
// runs. Cost: O(report).
[[nodiscard]] std::vector<std::string> surprises_text(const Trace& trace,
                                                      const HandOutReport& report);

}  // namespace stowage::simulator
