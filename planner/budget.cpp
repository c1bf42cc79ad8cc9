#include "planner/budget.h"

#include <string>

#include "traces/size_text.h"

namespace stowage::planner {

using simulator::PeakKind;
using simulator::Plan;
using simulator::ReplayResult;

namespace {

bool is_percentage(const simulator::PlanBudget& budget) {
  return budget.device_text.find('%') != std::string::npos;
}

}  // namespace

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

Result<Bytes> resident_peak(const simulator::StepIndex& index, PeakKind kind,
                            simulator::PlacementMode placement) {
  const Bytes peak =
      peak_of(simulator::replay(index, simulator::resident_schedule(index, placement)), kind);
  if (peak >= 0) return peak;
  return Error{ErrorCode::usage,
               "the trace's device (" + index.trace().env.device + ") has no such counter", "", "",
               "requested or active"};
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

Result<Bytes> reserved_to_fit(const Trace& trace, Bytes device, ByteUnits units) {
  if (trace.setup.size() == 0) {
    return Error{ErrorCode::usage,
                 "the trace's device (" + trace.env.device + ") has no reserved bytes", "", "",
                 "use a budget on active bytes"};
  }
  if (device <= trace.env.context_bytes) {
    std::string given = format_bytes(device, units);
    std::string context = format_bytes(trace.env.context_bytes, units);
    if (given == context) {
      given = std::to_string(device) + " bytes";
      context = std::to_string(trace.env.context_bytes) + " bytes";
    }
    return Error{ErrorCode::usage,
                 device < trace.env.context_bytes
                     ? given + " does not even hold the CUDA context of " + context
                     : given + " hold the CUDA context and nothing else",
                 "", "", "give the size of a device, such as 24GiB"};
  }
  return device - trace.env.context_bytes;
}

Status resolve_budget(const simulator::StepIndex& index, const std::string& sha256, Plan& plan) {
  simulator::PlanBudget& budget = plan.budget;
  if (budget.on == PeakKind::reserved && index.trace().setup.size() == 0) {
    return Error{ErrorCode::bad_input,
                 "the trace's device (" + index.trace().env.device + ") has no reserved bytes", "",
                 "/budget/on", "use active"};
  }
  if (!is_percentage(budget)) return Unit{};
  if (budget.device && !plan.target.trace.empty() && plan.target.trace != sha256) {
    budget.device_text.clear();
    return Unit{};
  }
  const Bytes peak = peak_of(
      simulator::replay(index, simulator::resident_schedule(index, plan.placement)), budget.on);
  const auto bytes = parse_size(budget.device_text, peak);
  if (!bytes) {
    Error error = bytes.error();
    error.code = ErrorCode::bad_input;
    error.pointer = "/budget/device";
    return error;
  }
  if (budget.device && *budget.device != *bytes) {
    return Error{ErrorCode::bad_input,
                 budget.device_text + " of the peak " + simulator::name_of(budget.on) + " of " +
                     std::to_string(peak) + " bytes without the plan are " +
                     std::to_string(*bytes) + " bytes, not " + std::to_string(*budget.device),
                 "", "/budget/device_bytes", "leave device_bytes out, or plan again"};
  }
  budget.device = *bytes;
  return Unit{};
}

void move_to(simulator::PlacementMode placement, Plan& plan) {
  if (plan.placement == placement) return;
  plan.placement = placement;
  if (plan.budget.device && is_percentage(plan.budget)) plan.budget.device_text.clear();
}

}  // namespace stowage::planner
