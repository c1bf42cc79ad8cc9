#include "profiler/torch/quiet_steps.h"

#include <algorithm>
#include <numeric>

#include "traces/result.h"

namespace stowage::profiler {

namespace {
constexpr Wide kPerMille = 1000;
}

QuietSteps::QuietSteps(const StepBudget& budget, const Patience& patience, std::size_t window)
    : budget_(budget), patience_(patience), window_(window) {
  STOWAGE_ASSERT(window > 0);
}

bool QuietSteps::wants_more() const {
  const auto done = static_cast<std::int64_t>(times_.size());
  if (budget_.wants_more(done, spent_)) return true;
  return patience_.time_ns > 0 && !was_quiet_ &&
         StepBudget{0, kPatience * budget_.most, patience_.time_ns}.wants_more(done, spent_);
}

void QuietSteps::add(Nanoseconds step_ns) {
  times_.push_back(step_ns);
  spent_ += step_ns;
  const Window window = last_window();
  // Windows that are not full yet are of all steps, so the last of them is the one: two steps that
  // agree say nothing of the third.
  const bool is_first = times_.size() <= window_;
  if (is_first || times_[window.step] < times_[best_.step]) best_ = window;
  was_quiet_ = window.quiet || (was_quiet_ && !is_first);
}

bool QuietSteps::may_be_chosen(std::size_t step) const {
  return step == best_.step || step + window_ > times_.size();
}

QuietSteps::Window QuietSteps::last_window() const {
  std::vector<std::size_t> rows(std::min(window_, times_.size()));
  std::iota(rows.begin(), rows.end(), times_.size() - rows.size());
  std::sort(rows.begin(), rows.end(),
            [this](std::size_t a, std::size_t b) { return times_[a] < times_[b]; });
  const Wide spread = Wide{times_[rows.back()]} - times_[rows.front()];
  const std::size_t step = rows[rows.size() / 2];
  const bool agrees =
      rows.size() > 1 && spread * kPerMille <= Wide{times_[rows.front()]} * kSpreadPerMille;
  return {step, agrees && (patience_.aim_ns == 0 || times_[step] <= patience_.aim_ns)};
}

}  // namespace stowage::profiler
