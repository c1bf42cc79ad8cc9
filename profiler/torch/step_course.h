// StepCourse: which step of a measured run is for what. First those until steps are steady, then
// those whose time counts; on a GPU, where a stall that is measured makes its step longer, the last
// few have their stalls measured and their times left out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/torch/quiet_steps.h"

namespace stowage::profiler {

class StepCourse {
 public:
  static constexpr std::int64_t kSteadyFrom = 2;
  static constexpr std::int64_t kMostStallSteps = 3;

  struct Options {
    std::int64_t steps = 3;  // at least 1
    // Long steps are run less often: steady ones for so long, and so many steps at least (0 = all).
    std::int64_t least_steps = 0;
    Nanoseconds steady_time = 15'000'000'000;
    // More steps are run on a GPU until kWindow in a row agree, for so long: what else runs on the
    // host slows the launch thread down for seconds (docs/decisions/0015). 0 = no more than
    // `steps`.
    Nanoseconds patience = 0;
    // What a step should take: steps that agree on 2 % more are slowed down alike, so patience goes
    // on. 0 = not known.
    Nanoseconds expected = 0;
  };
  static constexpr std::size_t kWindow = 10;

  // Of options.steps steps, fewer when they are long and more in the options' patience. A
  // quarter of the steady ones, kMostStallSteps at most, measure stalls on a GPU; elsewhere, and
  // where there are not five steady ones, each step measures both.
  StepCourse(bool on_gpu, const Options& options);

  [[nodiscard]] bool wants_more() const;
  // Whether the next step's stalls are measured.
  [[nodiscard]] bool measures_stalls() const;
  void add(Nanoseconds step_ns);
  // Of the steady steps whose time counts: the median of the quietest kWindow in a
  // row with patience on a GPU, else of all. There is one.
  [[nodiscard]] Nanoseconds step_ns() const { return timed_.step_ns(); }
  // Of all of these.
  [[nodiscard]] Ppm spread() const { return timed_.spread(); }

 private:
  std::int64_t steps_;
  std::int64_t steady_;
  std::int64_t stall_steps_;
  QuietSteps timed_;
  std::int64_t done_ = 0;
  std::int64_t stalls_done_ = 0;
};

}  // namespace stowage::profiler
