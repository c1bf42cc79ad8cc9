#include "planner/applied_file.h"

#include <utility>

#include "simulator/step/plan_structure.h"

namespace stowage::planner {

using simulator::Plan;
using simulator::ReplayResult;

simulator::Predicted predicted_of(const ReplayResult& result) {
  return {result.peak_requested, result.peak_active, result.peak_reserved,
          result.step_ns,        result.stall_ns,    result.host_bytes};
}

Result<AppliedFile> apply_file(const Trace& recording, const Plan& plan,
                               const std::string& plan_file) {
  const auto in_file = [&plan_file](Error error) {
    if (error.file.empty()) error.file = plan_file;
    return error;
  };
  const Result<simulator::Step> step = simulator::unroll(recording, plan);
  if (!step) return in_file(step.error());
  auto index = std::make_shared<const simulator::StepIndex>(*step);
  Result<simulator::Lowering> lowering = simulator::lower(*index, plan);
  if (!lowering) return in_file(lowering.error());
  return AppliedFile{simulator::structure_of(*step), std::move(index), std::move(lowering).value()};
}

}  // namespace stowage::planner
