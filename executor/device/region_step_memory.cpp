#include "executor/device/region_step_memory.h"

#include <utility>

#include "traces/size_text.h"

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

template <class Attempt>
auto RegionStepMemory::with_room(Attempt&& attempt) -> decltype(attempt()) {
  for (;;) {
    auto result = attempt();
    if (result || result.error().code != ErrorCode::condition || !host_.lend()) return result;
  }
}

Result<c10::DataPtr> RegionStepMemory::take_lasting(Bytes bytes) {
  return with_room([&] { return host_.take_lasting(*region_, bytes); });
}

Status RegionStepMemory::map_rest() {
  return with_room([&]() -> Status {
    // All of it is counted already, mapped or not; what the allocator holds besides is not.
    if (Status status = host_.make_room(0); !status) {
      return Error{status.error().code,
                   "planned memory of " + format_bytes(bytes()) + ": " + status.error().message, "",
                   "", "free what else is there, or allow more"};
    }
    const std::lock_guard lock(host_.region_lock());
    return region_->map_rest();
  });
}

Status RegionStepMemory::take_back(std::int64_t stream) {
  Bytes lent = 0;
  {
    const std::lock_guard lock(host_.region_lock());
    lent = region_->lent_bytes();
  }
  Status status = host_.make_room(lent);
  if (status) {
    const std::lock_guard lock(host_.region_lock());
    status = region_->map_rest();
    if (status) region_->begin_period(stream);  // before anybody has them lent again
  }
  host_.regions_changed();
  if (status || status.error().code != ErrorCode::condition) return status;
  return Error{ErrorCode::condition,
               format_bytes(lent) + " of the plan's memory were lent and cannot come back: " +
                   status.error().message,
               "", "", "free what was made between steps"};
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

Result<bool> RegionStepMemory::begin_period() {
  if (region_->is_forked()) {
    return Error{ErrorCode::environment,
                 "planned memory: it is that of the process which this one is a fork of", "", "",
                 "train in one process, or attach in each behind the fork"};
  }
  const std::int64_t stream = host_.current_stream();
  const auto is_delaying = [&] {
    const std::lock_guard lock(host_.region_lock());
    return region_->is_delaying();
  };
  if (is_delaying()) host_.wait_for_device();
  {
    const std::lock_guard lock(host_.region_lock());
    if (!region_->is_lent()) {
      region_->begin_period(stream);
      return false;
    }
  }
  if (Status status = with_room([&] { return take_back(stream); }); !status) return status.error();
  return true;
}

void RegionStepMemory::reach(EventId event) {
  const std::lock_guard lock(host_.region_lock());
  region_->server().reach(event);
}

void RegionStepMemory::end_period() {
  const std::lock_guard lock(host_.region_lock());
  region_->server().end_period();
}

Bytes RegionStepMemory::bytes() const {
  const std::lock_guard lock(host_.region_lock());
  return region_->bytes();
}

std::int64_t RegionStepMemory::lent() const {
  const std::lock_guard lock(host_.region_lock());
  return region_->times_lent();
}

simulator::HandOutReport RegionStepMemory::report() const {
  const std::lock_guard lock(host_.region_lock());
  return region_->server().report();
}

}  // namespace stowage::executor
