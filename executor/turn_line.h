// TurnLine: work of several threads, one piece at a time and in the order in which places in the
// line were taken, with no lock held while a piece runs. So a piece may call whatever it likes: a
// kernel's launch, an allocator with somebody's callback in it, code of the user's that comes back
// to this line, on the same thread or with work that nobody waits for on another one.
//
//   turn = line.take()                     under the lock of whatever decides about the order
//   { TurnLine::Place place(line, turn); work(); }   behind it: waits for the turns ahead
//   line.post(turn, work)                  or so: returns at once when another thread is at work,
//                                          which does this piece behind its own
//
// Every turn that was taken must be used: those behind it wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace stowage::executor {

class TurnLine {
 public:
  using Turn = std::uint64_t;

  enum class Failures : std::uint8_t { thrown, dropped };

  // While it lives, the calling thread is at work.
  class Place {
   public:
    // Waits until it is the turn's turn. On a thread that is at work already it does not: what
    // comes then is part of the work around it. Throws what a posted piece has thrown since, or
    // drops it.
    Place(TurnLine& line, Turn turn, Failures failures = Failures::thrown);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    TurnLine& line_;
    bool is_inner_;
  };

  [[nodiscard]] Turn take();
  // What `work` throws comes out of a later Place.
  void post(Turn turn, std::function<void()> work);

 private:
  // All under the lock, which they give up while work runs.
  void finish(std::unique_lock<std::mutex>& lock);
  void run_posted(std::unique_lock<std::mutex>& lock, const std::function<void()>& work);

  std::mutex mutex_;  // guards what follows; never held while work runs
  std::condition_variable next_changed_;
  Turn taken_ = 0;
  Turn next_ = 0;                                 // whose turn it is
  std::thread::id worker_;                        // who is at work; none = nobody
  std::map<Turn, std::function<void()>> posted_;  // ahead of their turns
  std::set<Turn> done_;                           // likewise: as part of the work around them
  std::exception_ptr failure_;                    // of a posted piece, the first
};

}  // namespace stowage::executor
