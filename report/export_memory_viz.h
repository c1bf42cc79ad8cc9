// A step's memory in the shape that torch.cuda.memory._dump_snapshot() writes, for PyTorch's
// memory_viz page and `python -m torch.cuda._memory_viz`. docs/exports.md says what it shows.
#pragma once

#include <string>

#include "report/step_view.h"

namespace stowage::report {

// A pickle of {"segments", "device_traces"}. What exists at step begin is allocated ahead of the
// first event. Addresses are this exporter's: first fit in one segment, sizes rounded up to 512
// bytes. Cost: O(spans log spans).
[[nodiscard]] std::string export_memory_viz(const StepView& step);

}  // namespace stowage::report
