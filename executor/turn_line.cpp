#include "executor/turn_line.h"

#include <utility>

#include "traces/result.h"

namespace stowage::executor {

TurnLine::Turn TurnLine::take() {
  const std::lock_guard lock(mutex_);
  return taken_++;
}

TurnLine::Place::Place(TurnLine& line, Turn turn, Failures failures) : line_(line) {
  std::unique_lock lock(line_.mutex_);
  STOWAGE_ASSERT(turn < line_.taken_);
  is_inner_ = line_.worker_ == std::this_thread::get_id();
  if (is_inner_) {
    line_.done_.insert(turn);
    return;
  }
  line_.next_changed_.wait(lock, [&] { return line_.next_ == turn; });
  const std::exception_ptr failure = std::exchange(line_.failure_, nullptr);
  if (failure && failures == Failures::thrown) {
    line_.finish(lock);
    lock.unlock();
    std::rethrow_exception(failure);
  }
  line_.worker_ = std::this_thread::get_id();
}

TurnLine::Place::~Place() {
  if (is_inner_) return;
  std::unique_lock lock(line_.mutex_);
  line_.finish(lock);
}

void TurnLine::post(Turn turn, std::function<void()> work) {
  std::unique_lock lock(mutex_);
  STOWAGE_ASSERT(turn < taken_);
  if (next_ != turn || worker_ != std::thread::id()) {
    posted_.emplace(turn, std::move(work));
    return;
  }
  worker_ = std::this_thread::get_id();
  run_posted(lock, work);
  finish(lock);
}

// The turn that is on is over; so are those behind it that nobody comes for.
void TurnLine::finish(std::unique_lock<std::mutex>& lock) {
  worker_ = std::this_thread::get_id();
  for (++next_;; ++next_) {
    if (done_.erase(next_) > 0) continue;
    const auto posted = posted_.find(next_);
    if (posted == posted_.end()) break;
    const std::function<void()> work = std::move(posted->second);
    posted_.erase(posted);
    run_posted(lock, work);
  }
  worker_ = std::thread::id();
  next_changed_.notify_all();
}

void TurnLine::run_posted(std::unique_lock<std::mutex>& lock, const std::function<void()>& work) {
  lock.unlock();
  std::exception_ptr thrown;
  try {
    work();
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (thrown && !failure_) failure_ = thrown;
}

}  // namespace stowage::executor
