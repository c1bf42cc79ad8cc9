// RegionStepMemory: a StepMemory that is a region of the device's allocator.
#pragma once

#include <memory>

#include "executor/device/planned_regions.h"
#include "executor/device/step_memory.h"

namespace stowage::executor {

class RegionStepMemory final : public StepMemory {
 public:
  // `host` outlives it.
  RegionStepMemory(RegionHost& host, std::shared_ptr<PlannedRegion> region);
  ~RegionStepMemory() override;
  RegionStepMemory(const RegionStepMemory&) = delete;
  RegionStepMemory& operator=(const RegionStepMemory&) = delete;

  [[nodiscard]] Result<c10::DataPtr> take_lasting(Bytes bytes) override;
  [[nodiscard]] Status map_rest() override;
  void begin_setup() override;
  void end_setup() override;
  [[nodiscard]] Result<bool> begin_period() override;
  void reach(EventId event) override;
  void end_period() override;
  void close() override;
  [[nodiscard]] simulator::HandOutReport report() const override;
  [[nodiscard]] Bytes bytes() const override;
  [[nodiscard]] std::int64_t lent() const override;
  [[nodiscard]] Bytes mapped_bytes() const override { return region_->mapped_bytes(); }
  [[nodiscard]] bool has(const void* data) const override { return region_->has(data); }

 private:
  // Again and again while there is no room and other plans lend some.
  template <class Attempt>
  auto with_room(Attempt&& attempt) -> decltype(attempt());
  // And begins the period.
  [[nodiscard]] Status take_back(std::int64_t stream);

  RegionHost& host_;
  std::shared_ptr<PlannedRegion> region_;
};

}  // namespace stowage::executor
