// A process that trains under a plan, as its device sees it: every allocation has a number, and
// segments lie where `order` says. What AllocatorOutlook is shown in tests.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/allocator/caching_allocator.h"
#include "simulator/allocator/observed_allocator.h"

namespace stowage::testing {

class RealProcess {
 public:
  // Runs the setup of the trace and applies the schedule. Both outlive the object.
  RealProcess(const simulator::StepIndex& index, const simulator::Schedule& schedule,
              simulator::AddressOrder order);

  // What no plan knows of: stays for good.
  void hold(Bytes bytes) { static_cast<void>(allocate(bytes, -1)); }
  // Allocates all, then frees them.
  void reserve(const std::vector<Bytes>& buffers);
  void step();

  [[nodiscard]] simulator::ObservedAllocator observed() const;
  [[nodiscard]] std::int64_t first_serial() const { return first_serial_; }
  [[nodiscard]] const std::vector<Bytes>& segments_taken() const {
    return allocator_.segments_taken();
  }
  [[nodiscard]] std::vector<simulator::CachingAllocator::Piece> layout() const {
    return allocator_.layout();
  }

 private:
  using Slot = simulator::AllocationSequence::Slot;
  using Block = simulator::CachingAllocator::Block;
  struct Known {
    std::int64_t serial;
    Bytes requested;
    std::int64_t tag;
  };

  Block allocate(Bytes bytes, std::int64_t tag);
  void free(Block block);
  void make(Slot slot);
  void drop(Slot slot);
  void setup_row();
  void setup_until(std::int64_t event);

  const Trace& trace_;
  const std::int64_t storages_;
  const simulator::AllocationSequence sequence_;
  simulator::CachingAllocator allocator_;
  std::map<Bytes, Known> known_;  // by address
  std::map<Slot, Block> slots_;
  std::map<std::int32_t, Block> rows_;
  std::size_t next_row_ = 0;
  std::int64_t next_serial_ = 0;
  std::int64_t first_serial_ = 0;
};

}  // namespace stowage::testing
