#include "profiler/torch/step_course.h"

#include <algorithm>
#include <cstddef>

namespace stowage::profiler {

namespace {

StepBudget budget_of(std::int64_t timed, const StepCourse::Options& options) {
  const std::int64_t least = options.least_steps > 0 ? options.least_steps : options.steps;
  return StepBudget::up_to(timed, least - StepCourse::kSteadyFrom, options.steady_time);
}

}  // namespace

StepCourse::StepCourse(bool on_gpu, const Options& options)
    : steps_(options.steps),
      steady_(std::max<std::int64_t>(0, steps_ - kSteadyFrom)),
      stall_steps_(on_gpu ? std::clamp<std::int64_t>((steady_ - 1) / 4, 0, kMostStallSteps) : 0),
      timed_(
          budget_of(steady_ - stall_steps_, options),
          {.time_ns = stall_steps_ > 0 ? options.patience : 0,
           .aim_ns = options.expected + options.expected / 50},
          stall_steps_ > 0 && options.patience > 0 ? kWindow : static_cast<std::size_t>(steps_)) {}

bool StepCourse::wants_more() const {
  return done_ < std::min(kSteadyFrom, steps_) || timed_.wants_more() ||
         stalls_done_ < stall_steps_;
}

bool StepCourse::measures_stalls() const {
  return stall_steps_ == 0 || (done_ >= kSteadyFrom && !timed_.wants_more());
}

void StepCourse::add(Nanoseconds step_ns) {
  if (done_++ < kSteadyFrom) return;
  if (timed_.wants_more()) {
    timed_.add(step_ns);
  } else {
    ++stalls_done_;
  }
}

}  // namespace stowage::profiler
