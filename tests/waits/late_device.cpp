#include "tests/waits/late_device.h"

#include <algorithm>
#include <cstring>

namespace stowage::testing {

using executor::CopyLane;
using executor::CopyTicket;

LateDevice::LateDevice(executor::Device& cpu) : ForwardingDevice(cpu) {
  to_.set_listener(this);
}

LateDevice::~LateDevice() {
  to_.set_listener(nullptr);
}

int LateDevice::freed_under_copy() const {
  const std::lock_guard lock(mutex_);
  return freed_under_copy_;
}

std::size_t LateDevice::most_under_way(CopyLane lane) const {
  const std::lock_guard lock(mutex_);
  return lanes_[static_cast<std::size_t>(lane)].most_under_way;
}

at::Tensor LateDevice::allocate_buffer(Bytes bytes, std::int64_t tag) {
  at::Tensor buffer = to_.allocate_buffer(bytes, tag);
  if (bytes > 0) to_.fill_on_compute(buffer.mutable_data_ptr(), kUnwritten, bytes);
  return buffer;
}

CopyTicket LateDevice::copy_async(CopyLane which, void* destination, const void* source,
                                  Bytes bytes) {
  if (before_call_) before_call_();
  const std::lock_guard lock(mutex_);
  deliver();
  Lane& lane = this->lane(which);
  // The device's side may begin inside its allocation (a view); its serial is then unknown, and
  // these tests copy whole storages.
  const void* const device_side = which == CopyLane::d2h ? source : destination;
  lane.under_way.push_back({destination, source, bytes, to_.allocation_serial(device_side)});
  lane.most_under_way = std::max(lane.most_under_way, lane.under_way.size());
  return {which, lane.done + lane.under_way.size()};
}

void LateDevice::run_up_to(Lane& lane, std::uint64_t number) {
  while (lane.done < number) {
    const Copy copy = lane.under_way.front();
    lane.under_way.pop_front();
    ++lane.done;
    if (copy.bytes > 0) {
      std::memcpy(copy.destination, copy.source, static_cast<std::size_t>(copy.bytes));
    }
  }
}

void LateDevice::wait(CopyTicket ticket) {
  if (before_call_) before_call_();
  const std::lock_guard lock(mutex_);
  run_up_to(lane(ticket.lane), ticket.number);
}

void LateDevice::copy_on_compute(void* destination, const void* source, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  deliver();
  if (to_.allocation_serial(destination) >= 0) {
    return to_.copy_on_compute(destination, source, bytes);
  }
  const auto* const from = static_cast<const std::byte*>(source);
  deliveries_.push_back({destination, {from, from + bytes}});
}

void LateDevice::fill_on_compute(void* destination, std::byte value, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  deliver();
  to_.fill_on_compute(destination, value, bytes);
}

void LateDevice::synchronize_compute() {
  const std::lock_guard lock(mutex_);
  deliver();
}

void LateDevice::synchronize() {
  const std::lock_guard lock(mutex_);
  deliver();
  for (Lane& lane : lanes_) run_up_to(lane, lane.done + lane.under_way.size());
}

void LateDevice::on_free(const executor::AllocationEvent& event) {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    for (Copy& copy : lane.under_way) {
      if (copy.serial != event.serial) continue;
      ++freed_under_copy_;
      copy.bytes = 0;
    }
  }
}

void LateDevice::deliver() {
  for (const Delivery& each : deliveries_) {
    std::memcpy(each.destination, each.bytes.data(), each.bytes.size());
  }
  deliveries_.clear();
}

}  // namespace stowage::testing
