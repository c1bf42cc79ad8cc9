// A device that passes everything on to another one: what a test device overrides a few calls of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/device.h"

namespace stowage::testing {

class ForwardingDevice : public executor::Device {
 public:
  // `to` outlives the device.
  explicit ForwardingDevice(executor::Device& to) : to_(to) {}

  [[nodiscard]] c10::Device torch_device() const override { return to_.torch_device(); }
  void describe(Environment& environment) const override { to_.describe(environment); }
  [[nodiscard]] executor::MemoryStats memory() const override { return to_.memory(); }
  void reset_peak() override { to_.reset_peak(); }
  void set_memory_limit(Bytes limit) override { to_.set_memory_limit(limit); }
  void set_listener(executor::AllocationListener* listener) override { to_.set_listener(listener); }
  [[nodiscard]] std::int64_t allocation_serial(const void* data) const override {
    return to_.allocation_serial(data);
  }
  [[nodiscard]] std::int64_t next_serial() const override { return to_.next_serial(); }
  [[nodiscard]] std::vector<executor::LiveAllocation> live_allocations() const override {
    return to_.live_allocations();
  }
  [[nodiscard]] std::optional<simulator::ObservedAllocator> observed_allocator() const override {
    return to_.observed_allocator();
  }
  [[nodiscard]] executor::SetupHistory setup_history() const override {
    return to_.setup_history();
  }
  [[nodiscard]] std::vector<std::int64_t> workspace_serials() const override {
    return to_.workspace_serials();
  }
  void begin_first_step() override { to_.begin_first_step(); }
  void end_setup() override { to_.end_setup(); }
  [[nodiscard]] simulator::PageChoice page_choice() const override { return to_.page_choice(); }
  [[nodiscard]] Result<std::unique_ptr<executor::StepMemory>> step_memory(
      simulator::MemoryLayout layout) override {
    return to_.step_memory(std::move(layout));
  }
  void release_cache() override { to_.release_cache(); }
  std::vector<executor::LibraryWorkspace> release_workspaces() override {
    return to_.release_workspaces();
  }
  void take_workspaces(const std::vector<executor::LibraryWorkspace>& workspaces) override {
    to_.take_workspaces(workspaces);
  }
  [[nodiscard]] Bytes used_bytes() const override { return to_.used_bytes(); }
  [[nodiscard]] Result<executor::HostArena> host_arena(Bytes bytes) override {
    return to_.host_arena(bytes);
  }
  [[nodiscard]] at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override {
    return to_.allocate_buffer(bytes, tag);
  }
  void begin_step() override { to_.begin_step(); }
  void end_step() override { to_.end_step(); }
  void check_stream() const override { to_.check_stream(); }
  executor::CopyTicket copy_async(executor::CopyLane lane, void* destination, const void* source,
                                  Bytes bytes) override {
    return to_.copy_async(lane, destination, source, bytes);
  }
  void wait(executor::CopyTicket ticket) override { to_.wait(ticket); }
  void copy_on_compute(void* destination, const void* source, Bytes bytes) override {
    to_.copy_on_compute(destination, source, bytes);
  }
  void fill_on_compute(void* destination, std::byte value, Bytes bytes) override {
    to_.fill_on_compute(destination, value, bytes);
  }
  void wait_blocking(executor::CopyTicket ticket) override { to_.wait_blocking(ticket); }
  void wait_elsewhere(executor::CopyTicket ticket) override { to_.wait_elsewhere(ticket); }
  void stand_still(const std::function<void()>& wait) override { to_.stand_still(wait); }
  void synchronize_compute() override { to_.synchronize_compute(); }
  void synchronize() override { to_.synchronize(); }
  void time_stalls(bool timed) override { to_.time_stalls(timed); }
  [[nodiscard]] Nanoseconds stall_ns() const override { return to_.stall_ns(); }
  [[nodiscard]] std::vector<std::string> warnings() const override { return to_.warnings(); }

 protected:
  executor::Device& to_;
};

}  // namespace stowage::testing
