// What recompute buys and costs, in words.
#pragma once

#include <string>

#include "report/answers/paint.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step.h"
#include "traces/size_text.h"

namespace stowage::report {

// Identical layers together: what they free and what they take. Empty where nothing runs again.
[[nodiscard]] std::string recompute_text(const simulator::Step& step,
                                         ByteUnits units = ByteUnits::decimal);

// Layer by layer, of a step that replays to `result`: bytes that are gone at its peak, bytes that
// it frees at all, time that it adds.
[[nodiscard]] std::string recompute_by_layer_text(const simulator::Step& step,
                                                  const simulator::ReplayResult& result,
                                                  const Paint& paint);

}  // namespace stowage::report
