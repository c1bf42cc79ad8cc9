// PlannedRegion: the pages of a layout and who has them. Not thread-safe: an allocator has its
// regions under its lock (executor/device/planned_regions.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/device/paged_memory.h"
#include "executor/device/step_memory.h"
#include "simulator/placement/hand_out_server.h"
#include "simulator/placement/memory_layout.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

// What an allocation is besides its size.
struct AllocationOrigin {
  std::int64_t tag = 0;     // as of an AllocationEvent
  std::int64_t stream = 0;  // that is the calling thread's
};

class PlannedRegion {
 public:
  PlannedRegion(simulator::MemoryLayout layout, std::unique_ptr<PagedMemory> memory);
  PlannedRegion(const PlannedRegion&) = delete;
  PlannedRegion& operator=(const PlannedRegion&) = delete;

  // Until close(); the owner outlives that time.
  void set_owner(const StepMemory* owner) { owner_ = owner; }
  [[nodiscard]] bool is_of(const StepMemory* memory) const { return owner_ == memory; }
  [[nodiscard]] simulator::HandOutServer& server() { return server_; }
  // Of pages; once it is closed, and while the others are lent, of those that something lay in.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] Bytes mapped_bytes() const { return memory_->region_bytes(); }
  [[nodiscard]] bool is_forked() const { return memory_->is_forked(); }

  // Null: not from here; in a fork of the process always. Memory changes hands in the order of one
  // stream, that of the period: what comes on another one is not served. Mapped: all of it in a
  // period, behind map_rest(); in a setup what is asked for, then. Cost: that of
  // HandOutServer::allocate().
  // `unnamed`: of what was not foreseen and is of no op that the server knows, its row there.
  [[nodiscard]] std::byte* allocate(Bytes bytes, const AllocationOrigin& origin,
                                    std::optional<std::size_t>* unnamed = nullptr);
  // Likewise for what lasts; mapped now.
  [[nodiscard]] Result<std::byte*> take_lasting(Bytes bytes);
  // All that is not mapped yet. Where that is refused only what something lies in stays mapped.
  [[nodiscard]] Status map_rest();
  // All is mapped, and neither a period nor a setup goes on: nothing but what is live is needed.
  [[nodiscard]] bool can_lend() const;
  // If so: the pages that nothing lies in are given back until map_rest(), which has to come ahead
  // of the next period. False: something lies in all of them, or the device cannot be waited for.
  // Waits for the device; cost: that of PagedMemory::keep_only().
  [[nodiscard]] bool lend();
  [[nodiscard]] bool is_lent() const { return is_lent_; }
  [[nodiscard]] Bytes lent_bytes() const { return is_lent_ ? memory_->bytes() - bytes_ : 0; }
  [[nodiscard]] std::int64_t times_lent() const { return times_lent_; }
  [[nodiscard]] bool has(const void* data) const {
    const auto* const at = static_cast<const std::byte*>(data);
    return memory_->begin() <= at && at < memory_->begin() + memory_->region_bytes();
  }
  // Of what was given.
  void free(const void* data);
  // Another stream works on it. Once freed it is not handed out before a period at whose begin the
  // device was waited for behind that, nor is what a period on another stream was given. Behind
  // close() there is none, and the pages go when the device was waited for.
  void used_elsewhere(const void* data, std::int64_t stream);
  // Ahead of a wait for the device: whether the next period begins with more if there is one.
  [[nodiscard]] bool is_delaying();
  void begin_period(std::int64_t stream);
  void begin_setup(std::int64_t stream);

  // Nothing is handed out any more. Once nothing is live the region can go. May be called again,
  // for what is live then.
  void close();
  // Behind close(): the pages that nothing lay in then go back. Without the allocator's lock:
  // it waits for the device; where it cannot, they go with the region.
  void give_back_rest() { static_cast<void>(memory_->keep_only(kept_)); }
  [[nodiscard]] bool is_over() const { return owner_ == nullptr && server_.live() == 0; }

 private:
  // Of a range that was taken just now; given back where the driver has no page for it.
  [[nodiscard]] Status map(std::int32_t range);
  // What is mapped for what is live.
  [[nodiscard]] std::vector<simulator::Mapping> live_mappings() const;
  // Nothing else is mapped from here on. False: the device cannot be waited for, and all stays.
  [[nodiscard]] bool keep_live();
  [[nodiscard]] std::int32_t range_of(const void* data) const;
  [[nodiscard]] std::byte* address_of(std::int32_t range) const {
    return memory_->begin() + layout_.address[static_cast<std::size_t>(range)];
  }

  static constexpr std::int64_t kAnyStream = -1;

  const StepMemory* owner_ = nullptr;
  std::int64_t stream_ = 0;  // of the period
  simulator::MemoryLayout layout_;
  std::unique_ptr<PagedMemory> memory_;
  Bytes bytes_;
  std::vector<simulator::Mapping> kept_;  // of what was live at close()
  bool is_whole_ = false;                 // all is mapped
  bool is_lent_ = false;
  std::int64_t times_lent_ = 0;
  simulator::HandOutServer server_;
  std::vector<std::int32_t> range_at_;  // by page of the region
  std::vector<bool> is_mapped_;         // by range
  std::vector<bool> is_elsewhere_;      // by range: another stream uses it
  // By range: that it was handed out on; kAnyStream: it lasts, and goes with the steps.
  std::vector<std::int64_t> stream_of_;
  std::vector<std::int32_t> delayed_;  // ranges that were freed while another stream uses them
  std::vector<std::int32_t> awaited_;  // of these, those of the last is_delaying()
};

}  // namespace stowage::executor
