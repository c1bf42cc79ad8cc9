// What a budget on device memory is about: which counter, in which memory, how many bytes.
#pragma once

#include <string>

#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/size_text.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::planner {

// The counter that a budget is about.
[[nodiscard]] Bytes peak_of(const simulator::ReplayResult& result, simulator::PeakKind kind);

// What `kind` counts at the peak of the recording with nothing moved: what a percentage is of.
// Errors (usage): the trace's device has no such counter. Cost: that of replay().
[[nodiscard]] Result<Bytes> resident_peak(const simulator::StepIndex& index,
                                          simulator::PeakKind kind,
                                          simulator::PlacementMode placement);

// The memory in which a plan is meant to run where nobody says another: where the trace's device
// has an allocator that reserves more than is active, planned memory.
[[nodiscard]] simulator::PlacementMode usual_placement(const Trace& trace);
// The counter that a budget is about where nobody says another: a user means the card, which is
// full by what is reserved; the caching allocator's reserved bytes are hardly a plan's to choose.
[[nodiscard]] simulator::PeakKind usual_counter(const Trace& trace,
                                                simulator::PlacementMode placement);

// The budget on reserved bytes with which a step runs on a device of `device` bytes: what the CUDA
// context takes is off. Errors (usage), which say sizes in `units`: the trace's device has no
// reserved bytes, nothing is left.
[[nodiscard]] Result<Bytes> reserved_to_fit(const Trace& trace, Bytes device,
                                            ByteUnits units = ByteUnits::decimal);

// Gives a plan that was read with a percentage as its budget the bytes: of the resident peak of
// `budget.on`, in the plan's memory. Bytes that stand beside it have to be these on the recording
// that the plan is of (`sha256` as `for.trace` has it, or a plan that does not say); of another
// one they count, and the percentage is dropped. Errors (bad_input, without the file): bytes that
// the percentage is not, a budget on reserved bytes of a device that has none.
[[nodiscard]] Status resolve_budget(const simulator::StepIndex& index, const std::string& sha256,
                                    simulator::Plan& plan);

// From now on the plan runs in that memory. A percentage was of the peak in its own: the bytes,
// which are known, stay.
void move_to(simulator::PlacementMode placement, simulator::Plan& plan);

}  // namespace stowage::planner
