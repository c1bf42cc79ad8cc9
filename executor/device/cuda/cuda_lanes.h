// The two copy engines of a GPU as FIFO lanes: one stream of our own each, ordered against compute
// by events alone.
//
//   compute:  ..K1..[record a]................................[wait b]..K2..
//   lane:               [wait a][copy n]........[record b]
//
// Every copy has an event of its own ("b") until drain() or wait_blocking() has seen it done; as
// many events exist as the busiest step so far had copies. A wait for a copy that is done already
// costs one query; any other is put between two timing events, whose distance is the stall, if
// stalls are timed.
// Every call is thread-safe: backward runs on another thread than forward.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "executor/device/cuda/event_pool.h"
#include "executor/device/device.h"

namespace stowage::executor {

enum class CudaQueue : std::uint8_t { compute, d2h, h2d };

struct CudaLaneTotals {
  std::uint64_t copies = 0;  // submitted
  Bytes bytes = 0;
};

class CudaLanes {
 public:
  // Runs on a thread of CUDA's, in front of copy `number`: once on compute (before the lane's wait
  // is recorded) and once on the lane. For tests that delay streams; must not call CUDA.
  using Delay = std::function<void(CudaQueue queue, std::uint64_t number)>;

  // On the current CUDA device. Throws c10::Error.
  explicit CudaLanes(Delay delay);
  // Waits for what is under way.
  ~CudaLanes();
  CudaLanes(const CudaLanes&) = delete;
  CudaLanes& operator=(const CudaLanes&) = delete;

  CopyTicket copy(CopyLane lane, cudaStream_t compute, void* destination, const void* source,
                  Bytes bytes);
  // Work put on `compute` from now on runs after the copy.
  void wait(CopyTicket ticket, cudaStream_t compute);
  // The CPU waits; the time counts as stall.
  void wait_blocking(CopyTicket ticket);
  // Another thread waits, and holds up nobody: the event may be given to a later copy meanwhile,
  // which it then waits for too.
  void wait_elsewhere(CopyTicket ticket);
  // Runs `wait`, in which the CPU waits for what is no copy; how long compute has nothing to do
  // meanwhile is a stall.
  void stand_still(const std::function<void()>& wait, cudaStream_t compute);
  // Takes note that everything is done (the caller has synchronised the device): copies' events
  // become free, and the stalls until here can be told.
  void drained();

  void time_stalls(bool timed);
  // Since the last reset_stall(), of what drained() has seen. Asking the driver takes 1 us a stall,
  // so it is not done within a step.
  [[nodiscard]] Nanoseconds stall_ns();
  void reset_stall();
  [[nodiscard]] CudaLaneTotals totals(CopyLane lane) const;
  [[nodiscard]] std::size_t events_created() const;

 private:
  struct Lane {
    cudaStream_t stream = nullptr;
    cudaEvent_t issued = nullptr;  // "a"; recorded anew for each copy
    std::deque<cudaEvent_t> pending;
    std::uint64_t first_pending = 1;  // the copy that pending.front() belongs to
    CudaLaneTotals totals;
  };
  struct Stall {
    cudaEvent_t begin;
    cudaEvent_t end;
  };

  Lane& lane(CopyLane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  // Null when the copy is known to be done.
  cudaEvent_t pending_event(CopyTicket ticket);
  void recycle(Lane& lane, std::uint64_t done);
  void tell_stalls();
  void delay(CudaQueue queue, cudaStream_t stream, std::uint64_t number);

  const Delay delay_;
  mutable std::mutex mutex_;
  EventPool order_{cudaEventDisableTiming};
  EventPool timing_{cudaEventDefault};
  std::array<Lane, 2> lanes_;
  std::vector<Stall> stalls_;  // not told yet
  std::size_t passed_ = 0;     // the first so many of them are over
  bool timed_ = false;
  std::size_t waits_ = 0;  // since the last drained()
  std::size_t most_waits_ = 0;
  Nanoseconds stall_ns_ = 0;
};

}  // namespace stowage::executor
