// QuietSteps: which of a row of equal steps were measured undisturbed. What else runs on the host
// slows a launch thread down for seconds at a time (docs/decisions/0015): the median of a few steps
// then tells how busy the host was. The time of a step is the median of its *window* here: those
// consecutive steps, so many of them, all when there are fewer, whose median is the smallest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/torch/step_budget.h"
#include "profiler/torch/stopwatch.h"
#include "traces/units.h"

namespace stowage::profiler {

class QuietSteps {
 public:
  static constexpr std::size_t kWindow = 5;
  // Steps of a window that was not disturbed are this close to each other. A window of two may be:
  // steps are that few where they are long.
  static constexpr std::int64_t kSpreadPerMille = 10;
  static constexpr std::int64_t kPatience = 80;

  struct Patience {
    Nanoseconds time_ns = 0;  // for all steps; 0: no more steps than the budget has
    Nanoseconds aim_ns = 0;   // a slower window is not quiet, however much it agrees; 0: any is
  };

  // As many steps as `budget` says; when no window of them was quiet, more until one is: up to
  // kPatience times as many, in the patience's time. `window`: steps, at least 1.
  QuietSteps(const StepBudget& budget, const Patience& patience, std::size_t window = kWindow);

  [[nodiscard]] bool wants_more() const;
  // The next step's time.
  void add(Nanoseconds step_ns);

  // There is a step. Which step is the median of the window, as a row of those added, and its time.
  [[nodiscard]] std::size_t step() const { return best_.step; }
  [[nodiscard]] Nanoseconds step_ns() const { return times_[best_.step]; }
  // Of all of them.
  [[nodiscard]] Ppm spread() const { return spread_of(times_); }
  // Whether row `step` may still become step(), or is.
  [[nodiscard]] bool may_be_chosen(std::size_t step) const;

 private:
  struct Window {
    std::size_t step = 0;  // of median time
    bool quiet = false;
  };
  [[nodiscard]] Window last_window() const;

  StepBudget budget_;
  Patience patience_;
  std::size_t window_;
  std::vector<Nanoseconds> times_;
  Nanoseconds spent_ = 0;
  Window best_;
  bool was_quiet_ = false;  // some window
};

}  // namespace stowage::profiler
