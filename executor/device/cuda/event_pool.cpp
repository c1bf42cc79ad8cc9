#include "executor/device/cuda/event_pool.h"

#include "executor/device/cuda/cuda_check.h"

namespace stowage::executor {

EventPool::~EventPool() {
  for (const cudaEvent_t event : all_) static_cast<void>(cudaEventDestroy(event));
}

cudaEvent_t EventPool::make() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, flags_), "making a CUDA event");
  all_.push_back(event);
  return event;
}

cudaEvent_t EventPool::take() {
  if (free_.empty()) return make();
  const cudaEvent_t event = free_.back();
  free_.pop_back();
  return event;
}

void EventPool::reserve(std::size_t count) {
  while (all_.size() < count) free_.push_back(make());
}

}  // namespace stowage::executor
