#include "report/step_view.h"

#include <algorithm>
#include <utility>

namespace stowage::report {
namespace {

Bytes highest(const std::vector<Bytes>& bytes) {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace

StepView recorded_step(const Trace& trace) {
  StepView view{.trace = &trace,
                .title = "recorded",
                .timeline = recorded_timeline(trace),
                .spans = AliveSpans(trace),
                .memory = {},
                .stories = StorageStories(trace),
                .stalls = {},
                .budget = {}};
  view.memory = memory_by_class(trace, view.spans);
  view.peak_requested = highest(view.timeline.requested);
  return view;
}

StepView planned_step(const Trace& trace, const Replayed& replayed, std::vector<StallRow> stalls,
                      const simulator::Plan& plan, std::string title) {
  StepView view{
      .trace = &trace,
      .title = std::move(title),
      .timeline = simulated_timeline(trace, replayed.schedule, replayed.result, replayed.detail),
      .spans = AliveSpans(trace, replayed.schedule),
      .memory = {},
      .stories = StorageStories(trace, replayed.schedule, replayed.result, replayed.detail),
      .stalls = std::move(stalls),
      .budget = plan.budget.device,
      .budget_on = plan.budget.on,
      .peak_requested = replayed.result.peak_requested};
  view.memory = memory_by_class(trace, view.spans);
  return view;
}

}  // namespace stowage::report
