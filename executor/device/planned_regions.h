// PlannedRegions: those of a device's allocator, which has them under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/planned_region.h"
#include "executor/device/step_memory.h"
#include "traces/units.h"

namespace stowage::executor {

class PlannedRegions {
 public:
  void add(std::shared_ptr<PlannedRegion> region) { all_.push_back(std::move(region)); }
  // It serves nobody any more. Returns it, so that its pages are given back without the lock
  // (PlannedRegion::give_back_rest()); it is none of these any more if nothing lies in it. Null: it
  // was none before.
  [[nodiscard]] std::shared_ptr<PlannedRegion> close(const PlannedRegion& region);
  // One that can lend does. Whether any did. Waits for the device.
  [[nodiscard]] bool lend() const;
  // Null: none serves that. `unnamed`: as PlannedRegion::allocate() has it.
  [[nodiscard]] std::byte* allocate(const StepMemory* memory, Bytes bytes,
                                    const AllocationOrigin& origin,
                                    std::optional<std::size_t>* unnamed) const;
  void name_unforeseen(const StepMemory* memory, std::size_t which, std::string op) const;
  // The one that has the address, or null.
  [[nodiscard]] PlannedRegion* at(const void* data) const;
  // Of one of them. Returns the region if it is closed and nothing lies in it any more, likewise.
  [[nodiscard]] std::shared_ptr<PlannedRegion> free(const void* data);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] Bytes bytes() const;       // of all
  [[nodiscard]] Bytes lent_bytes() const;  // likewise

 private:
  using All = std::vector<std::shared_ptr<PlannedRegion>>;
  [[nodiscard]] std::shared_ptr<PlannedRegion> take_if_over(All::iterator region);
  All all_;
};

// An allocator that has regions.
class RegionHost {
 public:
  virtual ~RegionHost() = default;
  // From here on the region serves the threads whose current memory is its owner's.
  virtual void add_region(std::shared_ptr<PlannedRegion> region) = 0;
  // Pages that nothing lies in go back. Again: those that nothing lies in by then.
  virtual void close_region(const PlannedRegion& region) = 0;
  // PlannedRegion::take_lasting(), as an allocation of the device's.
  [[nodiscard]] virtual Result<c10::DataPtr> take_lasting(PlannedRegion& region, Bytes bytes) = 0;
  // A region that is between periods gives back the pages that nothing lies in. False: none could.
  // Waits for the device.
  [[nodiscard]] virtual bool lend() = 0;
  // Ahead of mapping pages, so many bytes of which no region counts yet: what the allocator has
  // cached goes. Waits for the device. Error (condition): a limit is below it.
  [[nodiscard]] virtual Status make_room(Bytes bytes) = 0;
  // Behind it, whatever came of it.
  virtual void regions_changed() = 0;
  // For all that was asked of it. Not under region_lock().
  virtual void wait_for_device() {}
  // What the regions are looked at and changed under.
  [[nodiscard]] virtual std::mutex& region_lock() = 0;
  // The calling thread's.
  [[nodiscard]] virtual std::int64_t current_stream() const { return 0; }
};

}  // namespace stowage::executor
