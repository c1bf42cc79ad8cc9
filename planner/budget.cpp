#include "planner/budget.h"

#include <string>

#include "traces/size_text.h"

namespace stowage::planner {

using simulator::PeakKind;
using simulator::Plan;
using simulator::ReplayResult;

Bytes peak_of(const ReplayResult& result, PeakKind kind) {
  switch (kind) {
    case PeakKind::requested:
      return result.peak_requested;
    case PeakKind::active:
      return result.peak_active;
    case PeakKind::reserved:
      return result.peak_reserved;
  }
  return result.peak_active;
}

simulator::PlacementMode usual_placement(const Trace& trace) {
  return trace.setup.size() > 0 ? simulator::PlacementMode::planned
                                : simulator::PlacementMode::caching;
}

PeakKind usual_counter(const Trace& trace, simulator::PlacementMode placement) {
  return trace.setup.size() > 0 && placement == simulator::PlacementMode::planned
             ? PeakKind::reserved
             : PeakKind::active;
}

Result<Bytes> reserved_to_fit(const Trace& trace, Bytes device) {
  if (trace.setup.size() == 0) {
    return Error{ErrorCode::usage,
                 "the trace's device (" + trace.env.device + ") has no reserved bytes", "", "",
                 "use a budget on active bytes"};
  }
  if (device <= trace.env.context_bytes) {
    return Error{ErrorCode::usage,
                 format_bytes(device) + " do not even hold the CUDA context of " +
                     format_bytes(trace.env.context_bytes),
                 "", "", "give the size of a device, such as 24GiB"};
  }
  return device - trace.env.context_bytes;
}

Status resolve_budget(const simulator::StepIndex& index, Plan& plan) {
  if (plan.budget.device || plan.budget.device_text.empty()) return Unit{};
  const ReplayResult resident =
      simulator::replay(index, simulator::resident_schedule(index, plan.placement));
  const Bytes peak = peak_of(resident, plan.budget.on);
  if (peak < 0) {
    return Error{ErrorCode::bad_input, "the trace's device has no reserved bytes", "", "/budget/on",
                 "use active"};
  }
  auto bytes = parse_size(plan.budget.device_text, peak);
  if (!bytes) {
    Error error = bytes.error();
    error.code = ErrorCode::bad_input;
    error.pointer = "/budget/device";
    return error;
  }
  plan.budget.device = *bytes;
  return Unit{};
}

}  // namespace stowage::planner
