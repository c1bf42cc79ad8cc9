#include "cli/torch/judgement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "report/words.h"

namespace stowage::cli {

namespace {

constexpr std::int64_t kActivePerMille = 1;  // of the measured bytes

Bytes peak_of(const MeasuredRun& run, simulator::PeakKind kind) {
  switch (kind) {
    case simulator::PeakKind::requested:
      return run.peak_requested;
    case simulator::PeakKind::active:
      return run.peak_active;
    case simulator::PeakKind::reserved:
      return run.peak_reserved;
  }
  STOWAGE_ASSERT(false && "unknown counter");
}

std::string off_by(const std::string& what, Bytes measured, Bytes predicted) {
  return what + " of " + report::exact_bytes(measured) + " is " +
         report::with_commas(measured - predicted) + " bytes off the predicted " +
         report::with_commas(predicted);
}

void judge_results(const Verification& v, const Demands& demands, Judgement& judgement) {
  const auto compared =
      std::min(v.planned.steps.size(), static_cast<std::size_t>(v.compared_steps));
  for (std::size_t k = 0; k < compared; ++k) {
    if (std::isfinite(v.planned.steps[k].loss)) continue;
    judgement.failures.push_back("the loss of step " + std::to_string(k) +
                                 " is not a number: equal results say nothing about the gradients");
    break;
  }
  if (v.difference.bitwise || (demands.tolerance_given && v.difference.within_tolerance)) return;
  if (v.repeatability.bitwise) {
    judgement.failures.push_back(report::with_commas(v.difference.differing) + " of " +
                                 report::with_commas(v.difference.tensors) +
                                 " tensors differ, first " + v.difference.first);
    return;
  }
  if (!v.difference.magnitude_known || !v.repeatability.magnitude_known) {
    judgement.failures.emplace_back(
        "the model does not repeat itself, and digests do not tell whether the plan changes more "
        "than that: verify a smaller model, or without --reference");
    return;
  }
  const executor::TensorDifference* const far = executor::beyond(v.difference, v.repeatability);
  if (far == nullptr) return;
  judgement.failures.push_back(far->name + " differs by up to " +
                               std::to_string(far->max_abs_diff) +
                               ", more than it does between two runs without a plan");
}

void judge_program(const Verification& v, const Demands& demands, Judgement& judgement) {
  const MeasuredRun& run = v.planned;
  auto& failures = judgement.failures;
  if (!run.on_plan) failures.push_back("the step left its plan: " + run.first_difference);
  if (run.on_plan && run.unplanned_stored_bytes > 0) {
    failures.push_back(
        "a steady step stored " + report::exact_bytes(run.unplanned_stored_bytes) +
        " of parameters or optimizer state beside the plan: they were written where no "
        "write was recorded");
  }
  if (!run.peaks_constant) failures.emplace_back("the peak requested differs between steady steps");
  if (run.peak_requested != v.predicted.peak_requested) {
    failures.push_back(
        off_by("the peak requested", run.peak_requested, v.predicted.peak_requested));
  }
  if (run.host_bytes != v.predicted.host) {
    failures.push_back(off_by("the host memory", run.host_bytes, v.predicted.host));
  }
  for (std::string& failure : budget_failures(run, demands.budget)) {
    failures.push_back(std::move(failure));
  }
}

void judge_pinned(const MeasuredRun& run, Judgement& judgement) {
  if (run.pinned_after_first_step <= 0) return;
  judgement.failures.push_back(report::count_of(run.pinned_after_first_step, "block") +
                               " of host memory pinned after the first step");
}

void judge_driver(const MeasuredRun& run, const Demands& demands, Judgement& judgement) {
  judge_pinned(run, judgement);
  const std::int64_t taken = run.driver_allocations_after_first_step;
  const std::int64_t foreseen = demands.allocator_exact ? demands.later_segments : 0;
  if (taken <= foreseen) return;
  std::string text = "memory was taken from the driver " + report::count_of(taken, "time") +
                     " after the first step";
  if (demands.allocator_exact) {
    judgement.failures.push_back(text + ", predicted " + report::with_commas(foreseen));
  } else if (demands.moves) {
    judgement.failures.push_back(text);
  } else {
    judgement.remarks.push_back(text +
                                "; not judged, since the plan moves nothing and the "
                                "allocator's replay cannot say how often it would be");
  }
}

void judge_allocator(const Verification& v, const Demands& demands, Judgement& judgement) {
  const MeasuredRun& run = v.planned;
  if (run.peak_reserved < 0) return;  // a device without an allocator's counters
  if (!run.other_allocator.empty() && !demands.placed) {
    judgement.remarks.push_back("active and reserved bytes are not judged: the CUDA allocator is " +
                                run.other_allocator + ", which the prediction is not of");
    return judge_pinned(run, judgement);
  }
  const Bytes apart = std::abs(run.peak_active - v.predicted.peak_active);
  if (Wide{apart} * 1000 > Wide{run.peak_active} * kActivePerMille) {
    std::string text = off_by("the peak active", run.peak_active, v.predicted.peak_active);
    if (demands.allocator_exact) {
      judgement.failures.push_back(text + ", more than 0.1 %");
    } else {
      judgement.remarks.push_back(text + "; not judged, since the prediction is an estimate");
    }
  }
  const bool may_vary = demands.allocator_exact && demands.active_varies;
  if (!run.active_constant && !may_vary) {
    judgement.failures.emplace_back("the peak active differs between steady steps");
  }
  if (!run.reserved_constant && !(demands.allocator_exact && demands.later_segments > 0)) {
    judgement.failures.emplace_back("the peak reserved differs between steady steps");
  }
  if (demands.placed && run.peak_reserved != v.predicted.peak_reserved) {
    judgement.failures.push_back(
        off_by("the memory taken from the driver", run.peak_reserved, v.predicted.peak_reserved));
  }
  judge_driver(run, demands, judgement);
}

}  // namespace

std::vector<std::string> budget_failures(const MeasuredRun& run,
                                         const simulator::PlanBudget& budget) {
  std::vector<std::string> failures;
  const Bytes peak = peak_of(run, budget.on);
  if (budget.device && peak > *budget.device) {
    failures.push_back(std::string("the peak ") + simulator::name_of(budget.on) + " of " +
                       report::exact_bytes(peak) + " is above the plan's budget of " +
                       report::exact_bytes(*budget.device));
  }
  if (budget.host && run.host_bytes > *budget.host) {
    failures.push_back("the host memory of " + report::exact_bytes(run.host_bytes) +
                       " is above the plan's host budget of " + report::exact_bytes(*budget.host));
  }
  return failures;
}

Judgement judge(const Verification& v, const Demands& demands) {
  Judgement judgement;
  judge_results(v, demands, judgement);
  judge_program(v, demands, judgement);
  judge_allocator(v, demands, judgement);
  return judgement;
}

}  // namespace stowage::cli
