// CUDA events, made once and used again: making one costs more than recording it, and after the
// first step none should be made. Not thread-safe. Throws c10::Error when CUDA refuses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::executor {

class EventPool {
 public:
  // `flags` of cudaEventCreateWithFlags, such as cudaEventDisableTiming.
  explicit EventPool(unsigned int flags) : flags_(flags) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  [[nodiscard]] cudaEvent_t take();
  // The event may be recorded anew by whoever takes it next.
  void give_back(cudaEvent_t event) { free_.push_back(event); }
  // Makes events until `count` exist.
  void reserve(std::size_t count);
  [[nodiscard]] std::size_t created() const { return all_.size(); }

 private:
  [[nodiscard]] cudaEvent_t make();

  unsigned int flags_;
  std::vector<cudaEvent_t> all_;
  std::vector<cudaEvent_t> free_;
};

}  // namespace stowage::executor
