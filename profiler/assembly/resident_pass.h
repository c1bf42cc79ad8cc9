// The step as it would have run with everything kept, from an offload_all pass alone: for steps
// that do not fit the device with everything kept.
#pragma once

#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"

namespace stowage::profiler {

// Frees are put where they would stand: a storage dies at the last of
//   - its own free in the offload_all pass (the model's references),
//   - the end of the last hook that saved it (autograd's references),
//   - the release of the last tensor that its unpacks handed out (whoever used that);
// it outlives the step when one of these does not come. Counters and peak follow from them.
// Times are without the copies inside hooks. Everything else is offload_all's. Precondition:
// check_records(). Cost: O(records).
[[nodiscard]] RawPass resident_pass(const RawPass& offload_all);

}  // namespace stowage::profiler
