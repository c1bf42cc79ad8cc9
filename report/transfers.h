// What a transfer of a schedule moves.
#pragma once

#include <string>

#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

// Of a saved tensor: the site of the first one that the copy serves; of other tenants the kind and
// the layer: "parameter of LAYER".
[[nodiscard]] std::string name_of_copy(const Trace& trace, const simulator::Schedule& schedule,
                                       StayId stay);
// How it is copied.
[[nodiscard]] simulator::CopyMode mode_of_copy(const simulator::Schedule& schedule, StayId stay,
                                               bool is_store);
// Whether it serves saved tensors: such a copy is an offload or a reload, another one a store or a
// load.
[[nodiscard]] bool serves_saved(const simulator::Schedule& schedule, StayId stay);

}  // namespace stowage::report
