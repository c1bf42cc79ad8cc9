// What a plan's memory costs: how much less a step has at its peak, and for how much time.
#pragma once

#include <string>

#include "simulator/replay/replay.h"
#include "traces/size_text.h"

namespace stowage::report {

// "23.1 GB less cost 12.0 ms (+0.5 %)", "6.82 MB less cost no time"; requested bytes. Behind a
// figure of the planned step `than` says what it is less than. Empty where that has no less.
[[nodiscard]] std::string less_memory(const simulator::ReplayResult& resident,
                                      const simulator::ReplayResult& planned, ByteUnits units,
                                      const std::string& than = {});

}  // namespace stowage::report
