#include "python/bindings/torch/fiber.h"

#include <stowage/result.h>

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace stowage::python {

namespace {

constexpr std::size_t kGuardBytes = std::size_t{64} << 10;  // a multiple of every page size in use
constexpr std::size_t kStackBytes = std::size_t{8} << 20;

}  // namespace

Fiber::Fiber(std::function<void(Fiber&)> function) : function_(std::move(function)) {
  void* const memory = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  STOWAGE_ASSERT(::mprotect(memory, kGuardBytes, PROT_NONE) == 0);
}

Fiber::~Fiber() {
  cancel();
  ::munmap(memory_, kGuardBytes + kStackBytes);
}

void Fiber::cancel() {
  if (begun_ && !ended_) {
    cancelled_ = true;
    try {
      resume();
    } catch (...) {  // of a function that is not wanted any more
    }
    STOWAGE_ASSERT(ended_);
  }
  ended_ = true;
}

// makecontext() passes ints.
void Fiber::enter(unsigned int high, unsigned int low) {
  const std::uintptr_t address = (static_cast<std::uintptr_t>(high) << 32) | low;
  reinterpret_cast<Fiber*>(address)->run();
}

void Fiber::run() {
  try {
    function_(*this);
  } catch (const Cancelled&) {
  } catch (...) {
    failure_ = std::current_exception();
  }
  ended_ = true;
  // Returning ends in inside_.uc_link, which is the resume() that runs now.
}

void Fiber::resume() {
  STOWAGE_ASSERT(!ended_);
  if (!begun_) {
    begun_ = true;
    ::getcontext(&inside_);
    inside_.uc_stack.ss_sp = memory_ + kGuardBytes;
    inside_.uc_stack.ss_size = kStackBytes;
    inside_.uc_link = &outside_;
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    ::makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                  static_cast<unsigned int>(address >> 32), static_cast<unsigned int>(address));
  }
  ::swapcontext(&outside_, &inside_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Fiber::yield() {
  ::swapcontext(&inside_, &outside_);
  if (cancelled_) throw Cancelled{};
}

}  // namespace stowage::python
