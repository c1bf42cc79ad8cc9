#include "executor/device/cuda/cuda_lanes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "executor/device/cuda/cuda_check.h"
#include "executor/device/needed_wait.h"

namespace stowage::executor {

namespace {

struct DelayedCall {
  const CudaLanes::Delay* delay;
  CudaQueue queue;
  std::uint64_t number;
};

void CUDART_CB run_delay(void* data) {
  const std::unique_ptr<DelayedCall> call(static_cast<DelayedCall*>(data));
  (*call->delay)(call->queue, call->number);
}

}  // namespace

CudaLanes::CudaLanes(Delay delay) : delay_(std::move(delay)) {
  for (Lane& lane : lanes_) {
    check_cuda(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking),
               "making a copy stream");
    lane.issued = order_.take();
  }
}

CudaLanes::~CudaLanes() {
  for (Lane& lane : lanes_) {
    static_cast<void>(cudaStreamSynchronize(lane.stream));
    static_cast<void>(cudaStreamDestroy(lane.stream));
  }
}

void CudaLanes::delay(CudaQueue queue, cudaStream_t stream, std::uint64_t number) {
  if (!delay_) return;
  auto call = std::make_unique<DelayedCall>(DelayedCall{&delay_, queue, number});
  check_cuda(cudaLaunchHostFunc(stream, &run_delay, call.get()), "delaying a stream");
  static_cast<void>(call.release());  // run_delay owns it
}

CopyTicket CudaLanes::copy(CopyLane which, cudaStream_t compute, void* destination,
                           const void* source, Bytes bytes) {
  STOWAGE_ASSERT(bytes >= 0);
  const std::lock_guard lock(mutex_);
  Lane& lane = this->lane(which);
  const std::uint64_t number = lane.totals.copies + 1;
  const bool out = which == CopyLane::d2h;
  delay(CudaQueue::compute, compute, number);
  check_cuda(cudaEventRecord(lane.issued, compute), "recording what a copy waits for");
  if (out ? needed(Wait::copy_out_for_compute) : needed(Wait::copy_in_for_compute)) {
    check_cuda(cudaStreamWaitEvent(lane.stream, lane.issued, 0), "letting a copy wait for compute");
  }
  delay(out ? CudaQueue::d2h : CudaQueue::h2d, lane.stream, number);
  if (bytes > 0) {
    check_cuda(cudaMemcpyAsync(destination, source, static_cast<std::size_t>(bytes),
                               out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, lane.stream),
               out ? "a copy to the host" : "a copy to the device");
  }
  const cudaEvent_t done = order_.take();
  lane.pending.push_back(done);
  lane.totals.copies = number;
  lane.totals.bytes += bytes;
  check_cuda(cudaEventRecord(done, lane.stream), "recording the end of a copy");
  return {which, number};
}

cudaEvent_t CudaLanes::pending_event(CopyTicket ticket) {
  Lane& lane = this->lane(ticket.lane);
  STOWAGE_ASSERT(ticket.number <= lane.totals.copies);
  if (ticket.number < lane.first_pending) return nullptr;
  return lane.pending[static_cast<std::size_t>(ticket.number - lane.first_pending)];
}

void CudaLanes::recycle(Lane& lane, std::uint64_t done) {
  while (lane.first_pending <= done) {
    order_.give_back(lane.pending.front());
    lane.pending.pop_front();
    ++lane.first_pending;
  }
}

void CudaLanes::wait(CopyTicket ticket, cudaStream_t compute) {
  const std::lock_guard lock(mutex_);
  const cudaEvent_t copied = pending_event(ticket);
  if (copied == nullptr) return;
  ++waits_;
  const cudaError_t state = cudaEventQuery(copied);
  if (state == cudaSuccess) return;
  if (state != cudaErrorNotReady) check_cuda(state, "asking for a copy");
  if (timed_) {
    tell_stalls();  // unless it was asked for: their events are needed
    stalls_.push_back({timing_.take(), timing_.take()});
    check_cuda(cudaEventRecord(stalls_.back().begin, compute), "timing a wait");
  }
  if (ticket.lane == CopyLane::d2h ? needed(Wait::compute_for_copy_out)
                                   : needed(Wait::compute_for_copy_in)) {
    check_cuda(cudaStreamWaitEvent(compute, copied, 0), "letting compute wait for a copy");
  }
  if (timed_) check_cuda(cudaEventRecord(stalls_.back().end, compute), "timing a wait");
}

void CudaLanes::wait_blocking(CopyTicket ticket) {
  const std::lock_guard lock(mutex_);
  const cudaEvent_t copied = pending_event(ticket);
  if (copied == nullptr) return;
  const auto begin = std::chrono::steady_clock::now();
  check_cuda(cudaEventSynchronize(copied), "waiting for a copy");
  stall_ns_ +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
          .count();
  recycle(lane(ticket.lane), ticket.number);
}

void CudaLanes::wait_elsewhere(CopyTicket ticket) {
  cudaEvent_t copied = nullptr;
  {
    const std::lock_guard lock(mutex_);
    copied = pending_event(ticket);
  }
  if (copied != nullptr) check_cuda(cudaEventSynchronize(copied), "waiting for a copy");
}

void CudaLanes::stand_still(const std::function<void()>& wait, cudaStream_t compute) {
  std::optional<Stall> stall;
  {
    const std::lock_guard lock(mutex_);
    ++waits_;
    if (timed_) {
      tell_stalls();
      stall = {timing_.take(), timing_.take()};
      check_cuda(cudaEventRecord(stall->begin, compute), "timing a wait");
    }
  }
  wait();
  if (!stall) return;
  const std::lock_guard lock(mutex_);
  stalls_.push_back(*stall);
  check_cuda(cudaEventRecord(stall->end, compute), "timing a wait");
}

void CudaLanes::drained() {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) recycle(lane, lane.totals.copies);
  passed_ = stalls_.size();
  // How many waits find their copy unfinished changes from step to step; their number does not.
  most_waits_ = std::max(most_waits_, waits_);
  if (timed_) timing_.reserve(2 * most_waits_);
  waits_ = 0;
}

void CudaLanes::tell_stalls() {
  for (std::size_t i = 0; i < passed_; ++i) {
    const Stall& stall = stalls_[i];
    float milliseconds = 0;
    // An event that was never recorded (an exception came between) has no time to tell.
    if (cudaEventElapsedTime(&milliseconds, stall.begin, stall.end) == cudaSuccess) {
      stall_ns_ += std::llround(double{milliseconds} * 1e6);
    } else {
      static_cast<void>(cudaGetLastError());
    }
    timing_.give_back(stall.begin);
    timing_.give_back(stall.end);
  }
  stalls_.erase(stalls_.begin(), stalls_.begin() + static_cast<std::ptrdiff_t>(passed_));
  passed_ = 0;
}

void CudaLanes::time_stalls(bool timed) {
  const std::lock_guard lock(mutex_);
  timed_ = timed;
  // None is to be made within a step.
  if (timed_) timing_.reserve(2 * most_waits_);
}

Nanoseconds CudaLanes::stall_ns() {
  const std::lock_guard lock(mutex_);
  tell_stalls();
  return stall_ns_;
}

void CudaLanes::reset_stall() {
  const std::lock_guard lock(mutex_);
  for (const Stall& stall : stalls_) {
    timing_.give_back(stall.begin);
    timing_.give_back(stall.end);
  }
  stalls_.clear();
  passed_ = 0;
  stall_ns_ = 0;
}

CudaLaneTotals CudaLanes::totals(CopyLane lane) const {
  const std::lock_guard lock(mutex_);
  return lanes_[static_cast<std::size_t>(lane)].totals;
}

std::size_t CudaLanes::events_created() const {
  const std::lock_guard lock(mutex_);
  return order_.created() + timing_.created();
}

}  // namespace stowage::executor
