#include "executor/device/cpu_step_memory.h"

#include <unistd.h>

#include <utility>

namespace stowage::executor {
namespace {

// Linux lets a process have 65,530 by default.
constexpr std::int64_t kMostMappings = 30'000;

}  // namespace

Result<std::unique_ptr<CpuStepMemory>> CpuStepMemory::create(TrackedAllocator& allocator,
                                                             const simulator::StepIndex& index,
                                                             const simulator::Schedule& schedule) {
  const auto page = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  simulator::MemoryLayout layout = simulator::memory_layout(index, schedule, {page, kMostMappings});
  Result<PagedMemory> memory =
      PagedMemory::create(layout.placement.bytes(), layout.region_bytes, mappings(layout));
  if (!memory) return memory.error();
  return std::unique_ptr<CpuStepMemory>(
      new CpuStepMemory(allocator, std::move(layout), std::move(memory).value()));
}

CpuStepMemory::CpuStepMemory(TrackedAllocator& allocator, simulator::MemoryLayout layout,
                             PagedMemory memory)
    : allocator_(allocator),
      region_(std::make_shared<PlannedRegion>(*this, std::move(layout), std::move(memory))) {
  allocator_.add_region(region_);
}

CpuStepMemory::~CpuStepMemory() {
  allocator_.close_region(*region_);
}

void CpuStepMemory::begin_period() {
  allocator_.with(*region_, [](PlannedRegion& region) { region.server().begin_period(); });
}

void CpuStepMemory::reach(EventId event) {
  allocator_.with(*region_, [&](PlannedRegion& region) { region.server().reach(event); });
}

void CpuStepMemory::end_period() {
  allocator_.with(*region_, [](PlannedRegion& region) { region.server().end_period(); });
}

simulator::HandOutReport CpuStepMemory::report() const {
  return allocator_.with(*region_, [](PlannedRegion& region) { return region.server().report(); });
}

}  // namespace stowage::executor
