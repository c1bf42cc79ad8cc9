// Which saved tensors a schedule takes to the host, in words.
#pragma once

#include <cstddef>
#include <string>

#include "simulator/schedule/schedule.h"
#include "traces/size_text.h"
#include "traces/trace.h"

namespace stowage::report {

inline constexpr std::size_t kLeavingRows = 8;

// A table of sites, those of identical layers together, the most bytes first: how many copies
// leave, and their bytes; a tensor that several sites share stands at the first one. At most
// `shown` rows, then how much the others are. Empty where none leaves.
[[nodiscard]] std::string leaving_text(const Trace& trace, const simulator::Schedule& schedule,
                                       ByteUnits units, std::size_t shown = kLeavingRows);

}  // namespace stowage::report
