#include "python/bindings/search_watch.h"

#include <utility>

namespace stowage::python {

namespace nb = nanobind;

SearchWatch::SearchWatch(nb::object callback, Nanoseconds limit)
    : callback_(std::move(callback)), limit_(limit), begin_(Clock::now()), next_(begin_) {}

void SearchWatch::watch(planner::PlanRequest& request) {
  request.stop = stop_.get_token();
  request.progress = [this](const planner::Progress& progress) { this->progress(progress); };
}

void SearchWatch::finish() {
  if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
}

void SearchWatch::progress(const planner::Progress& progress) {
  const Clock::time_point now = Clock::now();
  if (limit_ > 0 && now - begin_ >= std::chrono::nanoseconds(limit_)) stop_.request_stop();
  if (raised_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(50);
  const nb::gil_scoped_acquire gil;
  ask_python(progress);
}

void SearchWatch::ask_python(const planner::Progress& progress) {
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback_.is_none()) return;
    callback_(progress.evaluations, progress.max_evaluations,
              progress.best_step_ns < 0 ? nb::none() : nb::cast(progress.best_step_ns));
  } catch (const nb::python_error&) {
    raised_ = std::current_exception();
    stop_.request_stop();
  }
}

}  // namespace stowage::python
