// LateDevice: the CPU device with copies that happen at the last moment that Device allows, so that
// a wait that is missing shows at every run and not now and then.
//
// - A copy of a lane runs when somebody waits for it, or for everything; until then its bytes are
//   still at their source.
// - A copy on compute to host memory is delivered ahead of the next work that comes after it on
//   compute, or when the CPU waits for compute.
// - A new buffer is full of kUnwritten.
// - Device memory that is freed under a copy is counted, and that copy never happens.
//
// Thread-safe as a CudaDevice is.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/profiler_torch/forwarding_device.h"

namespace stowage::testing {

class LateDevice final : public ForwardingDevice, private executor::AllocationListener {
 public:
  static constexpr std::byte kUnwritten{0xee};

  // Listens to the allocations of `cpu`, a CpuDevice without a listener, which outlives it.
  explicit LateDevice(executor::Device& cpu);
  // Copies that nobody waited for never happen.
  ~LateDevice() override;
  LateDevice(const LateDevice&) = delete;
  LateDevice& operator=(const LateDevice&) = delete;

  // Runs in front of every copy and wait, on its thread.
  void set_before_call(std::function<void()> hook) { before_call_ = std::move(hook); }

  // Copies that were under way on the lane when another one was issued there; most at once.
  [[nodiscard]] std::size_t most_under_way(executor::CopyLane lane) const;
  [[nodiscard]] int freed_under_copy() const;

  [[nodiscard]] at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override;
  executor::CopyTicket copy_async(executor::CopyLane lane, void* destination, const void* source,
                                  Bytes bytes) override;
  void wait(executor::CopyTicket ticket) override;
  void wait_blocking(executor::CopyTicket ticket) override { wait(ticket); }
  void wait_elsewhere(executor::CopyTicket ticket) override { wait(ticket); }
  void stand_still(const std::function<void()>& wait) override { wait(); }
  void copy_on_compute(void* destination, const void* source, Bytes bytes) override;
  void fill_on_compute(void* destination, std::byte value, Bytes bytes) override;
  void synchronize_compute() override;
  void synchronize() override;

 private:
  struct Copy {
    void* destination;
    const void* source;
    Bytes bytes;
    std::int64_t serial;  // of the device memory
  };
  struct Lane {
    std::deque<Copy> under_way;
    std::uint64_t done = 0;
    std::size_t most_under_way = 0;
  };
  struct Delivery {
    void* destination;
    std::vector<std::byte> bytes;
  };

  void on_alloc(const executor::AllocationEvent&) override {}
  void on_free(const executor::AllocationEvent& event) override;
  Lane& lane(executor::CopyLane which) { return lanes_[static_cast<std::size_t>(which)]; }
  static void run_up_to(Lane& lane, std::uint64_t number);
  void deliver();  // under the lock

  mutable std::mutex mutex_;
  std::array<Lane, 2> lanes_;
  std::vector<Delivery> deliveries_;
  std::function<void()> before_call_;
  int freed_under_copy_ = 0;
};

}  // namespace stowage::testing
