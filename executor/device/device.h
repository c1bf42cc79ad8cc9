// What the executor needs of a training device. Two real ones: CpuDevice (the embedded default) and
// CudaDevice. Everything is issued by one thread, the compute thread, in program order; copies run
// on two FIFO lanes beside it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/host_arena.h"
#include "executor/device/step_memory.h"
#include "simulator/allocator/observed_allocator.h"
#include "simulator/placement/memory_layout.h"
#include "traces/result.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::executor {

enum class CopyLane : std::uint8_t { d2h, h2d };

// Names one copy of one lane; tickets of a lane complete in order. 0 = no copy.
struct CopyTicket {
  CopyLane lane = CopyLane::d2h;
  std::uint64_t number = 0;
};

struct MemoryStats {
  Bytes requested = 0;
  Bytes peak_requested = 0;
  Bytes active = 0;
  Bytes peak_active = 0;
  Bytes reserved = -1;  // -1 = the device has no such number
  Bytes peak_reserved = -1;
  std::int64_t allocations = 0;  // since the device was made
  // Times that memory was taken from the driver since the device was made, and host blocks pinned;
  // -1 = the device has no such number.
  std::int64_t driver_allocations = -1;
  std::int64_t pinned_blocks = -1;
};

// One of those that the device's libraries keep for themselves, not its memory.
struct LibraryWorkspace {
  enum class Library : std::uint8_t { cublas, cublas_light };
  Library library = Library::cublas;
  void* handle = nullptr;  // the library's
  void* stream = nullptr;  // the driver's
};

// Who made an allocation: the step itself, or the executor (a buffer of a load).
inline constexpr std::int64_t kStepAllocation = -1;
inline constexpr std::int64_t kOffPlanTag = -2;  // a buffer of a load outside any plan

struct AllocationEvent {
  std::int64_t serial = -1;  // numbers allocations since the device was made; never reused
  Bytes bytes = 0;           // requested
  std::int64_t tag = kStepAllocation;  // or the value given to allocate_buffer()
  Bytes requested = 0;                 // live bytes of the device right after it
  bool is_free = false;
};

// Sees every device allocation and free, in program order, on the allocating thread; must neither
// allocate device memory nor call the device (a GPU's allocator holds its lock meanwhile).
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  virtual void on_alloc(const AllocationEvent& event) = 0;
  virtual void on_free(const AllocationEvent& event) = 0;
};

struct LiveAllocation {
  std::int64_t serial = -1;
  Bytes bytes = 0;
};

// Every allocation and free from the making of the device to the end of its first step, in program
// order; empty where no replay of the allocator needs them, or where it was given up.
struct SetupHistory {
  std::vector<AllocationEvent> events;
  std::size_t first_step = 0;  // the step's events are those from here on
  // Among the first events: allocations that were live when the device was made, in no order.
  std::int64_t adopted = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual c10::Device torch_device() const = 0;
  // Fills what an Environment says about the device: its kind and name, driver, memory, ..
  virtual void describe(Environment& environment) const = 0;
  [[nodiscard]] virtual MemoryStats memory() const = 0;
  virtual void reset_peak() = 0;
  // Device bytes that may be live (on a GPU: taken from the driver) at once; more throws
  // c10::OutOfMemoryError. 0 = no limit.
  virtual void set_memory_limit(Bytes limit) = 0;
  // At most one listener; null removes it. Only between steps.
  virtual void set_listener(AllocationListener* listener) = 0;
  // The serial of the live allocation that starts at `data`, -1 when it is not the device's.
  [[nodiscard]] virtual std::int64_t allocation_serial(const void* data) const = 0;
  // The serial that the next allocation will get.
  [[nodiscard]] virtual std::int64_t next_serial() const = 0;
  // Every live allocation, in order of serial. Only between steps. Cost: O(n log n).
  [[nodiscard]] virtual std::vector<LiveAllocation> live_allocations() const = 0;

  // What the device's allocator is where it is not one that the simulator has a model of
  // ("cudaMallocAsync"): what it has active and reserved is then not as predicted, but in planned
  // memory. Empty: it has, or the device has no allocator of its own.
  [[nodiscard]] virtual std::string other_allocator() const { return {}; }
  // Every block that the caching allocator has for the calling thread's stream, and what may still
  // be taken from the driver. Empty on a device without such an allocator, and where not all of it
  // is known: a block that another stream uses, a mode of the allocator that is not followed. Only
  // between steps. Cost: O(blocks log blocks), about 1 ms.
  [[nodiscard]] virtual std::optional<simulator::ObservedAllocator> observed_allocator() const = 0;

  // The history goes on until end_setup(), and is given up where it gets too long to be one of a
  // first step (a million events). Only the first call of either says anything; without
  // begin_first_step() there is no step in it.
  [[nodiscard]] virtual SetupHistory setup_history() const = 0;
  virtual void begin_first_step() = 0;
  virtual void end_setup() = 0;

  // Host memory for copies to and from the device, fast ones (pinned) where it has such. Errors:
  // HostArena::create(). When pinning fails the arena is pageable and says so (HostArena::pinned).
  [[nodiscard]] virtual Result<HostArena> host_arena(Bytes bytes) = 0;

  // Of planned memory: what the system or the driver maps at once, and how often.
  [[nodiscard]] virtual simulator::PageChoice page_choice() const = 0;
  // Memory for a layout with these pages; nothing is mapped yet. Errors (environment): the system
  // or the driver refuses it; (condition): with what other plans keep it is above the limit. It
  // ends ahead of the device. Other plans lend what they can for it, with a wait for the device.
  [[nodiscard]] virtual Result<std::unique_ptr<StepMemory>> step_memory(
      simulator::MemoryLayout layout) = 0;
  // What the device's own allocator has cached goes back to the driver. Waits for the device.
  virtual void release_cache() = 0;
  // What the device's libraries keep for themselves until they need it again (cuBLAS: workspaces
  // of each thread and stream) is freed. Waits for the device. Which they were.
  virtual std::vector<LibraryWorkspace> release_workspaces() = 0;
  // Serials of the allocations that are such workspaces now.
  [[nodiscard]] virtual std::vector<std::int64_t> workspace_serials() const { return {}; }
  // They are there again, as far as there is memory, wherever the calling thread's allocations lie.
  virtual void take_workspaces(const std::vector<LibraryWorkspace>& workspaces) = 0;
  // Used of the device's memory, as its driver says: the context and other programs included. -1 =
  // the device has no such number.
  [[nodiscard]] virtual Bytes used_bytes() const = 0;

  // A one-dimensional uint8 tensor of exactly `bytes` requested bytes, uninitialised, allocated on
  // the compute stream; invisible to op observers. Throws c10::OutOfMemoryError as PyTorch does.
  [[nodiscard]] virtual at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) = 0;

  // Around a step: the calling thread's stream is the compute stream until end_step(), and whatever
  // comes on another one throws c10::Error. Outside of a step compute is the stream of the thread
  // that calls. Steps of several models may go on at once, each with a begin and an end; what comes
  // then must be on one of their streams. A device without streams does nothing.
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
  // Throws c10::Error when the calling thread is not on the step's compute stream.
  virtual void check_stream() const = 0;

  // Queues a copy that starts once all compute issued so far is done and the lane's earlier copies
  // are done. Raw pointers: the caller keeps both sides alive until the copy was waited for.
  virtual CopyTicket copy_async(CopyLane lane, void* destination, const void* source,
                                Bytes bytes) = 0;
  // Compute issued from now on runs after the copy. On a GPU the CPU does not wait.
  virtual void wait(CopyTicket ticket) = 0;
  // Queues a copy that starts after everything that compute waits for, on the compute stream.
  virtual void copy_on_compute(void* destination, const void* source, Bytes bytes) = 0;
  // Queues a fill of device or host memory on the compute stream; for poisoning.
  virtual void fill_on_compute(void* destination, std::byte value, Bytes bytes) = 0;
  // The CPU waits until the copy is done (CopyMode::blocking).
  virtual void wait_blocking(CopyTicket ticket) = 0;
  // Some other thread than those of the step waits until the copy is done; no stall. Thread-safe.
  virtual void wait_elsewhere(CopyTicket ticket) = 0;
  // Runs `wait`, in which the CPU waits for what is no copy, so that compute may come to stand
  // still: how long it does is a stall. Throws what `wait` throws.
  virtual void stand_still(const std::function<void()>& wait) = 0;
  // The CPU waits for the compute issued so far, and not for copies on lanes.
  virtual void synchronize_compute() = 0;
  // The CPU waits for everything.
  virtual void synchronize() = 0;
  // Whether stall_ns() counts the waits of compute; at first it does not. A wait that is timed
  // takes a GPU's compute 3.5 us longer, so steps are timed without. The CPU device always counts
  // them.
  virtual void time_stalls(bool timed) = 0;
  // Nanoseconds that wait(), wait_blocking() and stand_still() stood still since the last call of
  // reset_peak(). On a GPU known after synchronize() only.
  [[nodiscard]] virtual Nanoseconds stall_ns() const = 0;
  // What the user should know of this device: memory that could not be pinned, ..
  [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
};

}  // namespace stowage::executor
