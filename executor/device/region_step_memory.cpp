#include "executor/device/region_step_memory.h"

#include <utility>

namespace stowage::executor {

RegionStepMemory::RegionStepMemory(RegionHost& host, std::shared_ptr<PlannedRegion> region)
    : host_(host), region_(std::move(region)) {
  region_->set_owner(this);
  host_.add_region(region_);
}

RegionStepMemory::~RegionStepMemory() {
  close();
}

void RegionStepMemory::close() {
  host_.close_region(*region_);
}

Result<c10::DataPtr> RegionStepMemory::take_lasting(Bytes bytes) {
  return host_.take_lasting(*region_, bytes);
}

Status RegionStepMemory::map_rest() {
  const std::lock_guard lock(host_.region_lock());
  return region_->map_rest();
}

void RegionStepMemory::begin_setup() {
  const std::int64_t stream = host_.current_stream();
  const std::lock_guard lock(host_.region_lock());
  region_->begin_setup(stream);
}

void RegionStepMemory::end_setup() {
  const std::lock_guard lock(host_.region_lock());
  region_->server().end_setup();
}

void RegionStepMemory::begin_period() {
  const std::int64_t stream = host_.current_stream();
  const std::lock_guard lock(host_.region_lock());
  region_->begin_period(stream);
}

void RegionStepMemory::reach(EventId event) {
  const std::lock_guard lock(host_.region_lock());
  region_->server().reach(event);
}

void RegionStepMemory::end_period() {
  const std::lock_guard lock(host_.region_lock());
  region_->server().end_period();
}

simulator::HandOutReport RegionStepMemory::report() const {
  const std::lock_guard lock(host_.region_lock());
  return region_->server().report();
}

}  // namespace stowage::executor
