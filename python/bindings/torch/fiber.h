// Fiber: a function with a stack of its own on the thread that resumes it, so that a function
// which calls a step (profiler::record) can be driven by a loop that is the user's:
//
//   Fiber fiber([](Fiber& self) { .. self.yield(); .. });
//   fiber.resume();   // runs to the first yield()
//   fiber.resume();   // from there to the end
//
// What is the thread's (LibTorch's state, errno, what is thread_local) is shared by both sides.
// Exceptions do not cross: what the function throws is rethrown by the resume() that it ended. No
// Python code may run on the fiber. A yield() inside a catch block is not allowed: the C++ runtime
// keeps caught exceptions by thread.
// Cost: two system calls a switch (swapcontext), and an 8 MiB stack of which only what is used is
// backed by memory; a guard page below it makes an overflow a crash.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>

namespace stowage::python {

class Fiber {
 public:
  // Starts with the first resume(). Throws std::bad_alloc when there is no stack to be had.
  explicit Fiber(std::function<void(Fiber&)> function);
  ~Fiber();  // cancels
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Not a std::exception, so that nobody takes it for an error.
  struct Cancelled {};

  // Precondition: !ended(), and the caller is not on this fiber.
  void resume();
  // Precondition: the caller is on this fiber.
  void yield();
  // One that has begun and not ended: its yield() throws Cancelled, which its function must let
  // pass; other exceptions of it are dropped. One that has not begun never does.
  void cancel();
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  static void enter(unsigned int high, unsigned int low);
  void run();

  std::function<void(Fiber&)> function_;
  std::byte* memory_ = nullptr;  // guard page and stack
  ucontext_t outside_{};
  ucontext_t inside_{};
  std::exception_ptr failure_;
  bool begun_ = false;
  bool ended_ = false;
  bool cancelled_ = false;
};

}  // namespace stowage::python
