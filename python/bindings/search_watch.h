// Between a search that runs without the GIL and Python: progress, Ctrl-C, the time limit.
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/plan.h>

#include <chrono>
#include <exception>
#include <stop_token>

namespace stowage::python {

// Takes the GIL at most every 50 ms. What Python raises there (KeyboardInterrupt, an exception of
// the callback) stops the search, and finish() raises it.
class SearchWatch {
 public:
  // `callback(evaluations, most, best_step_ns)`, the last None until a plan is known; may be None.
  // `limit`: 0 = none.
  SearchWatch(nanobind::object callback, Nanoseconds limit);

  // Puts itself into a request, which it must outlive.
  void watch(planner::PlanRequest& request);
  // With the GIL, once the search is over.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void progress(const planner::Progress& progress);
  void ask_python(const planner::Progress& progress);

  nanobind::object callback_;
  Nanoseconds limit_;
  Clock::time_point begin_;
  Clock::time_point next_;
  std::stop_source stop_;
  std::exception_ptr raised_;
};

}  // namespace stowage::python
