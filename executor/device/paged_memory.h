// PagedMemory: pages of memory, each at several addresses of one region: what a planned step
// allocates lies in (simulator/placement/memory_layout.h). Pages are taken from the system or the
// driver when they are first mapped. They are the process's that made it: a fork of it does not
// have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/device/process_forks.h"
#include "simulator/placement/memory_layout.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

class PagedMemory {
 public:
  // All pages are given back.
  virtual ~PagedMemory() = default;
  PagedMemory(const PagedMemory&) = delete;
  PagedMemory& operator=(const PagedMemory&) = delete;

  // Whole pages, inside of the region and of the memory; no address twice. Errors (condition): the
  // device has no page left; (environment): it is refused. What was mapped stays.
  [[nodiscard]] virtual Status map(const std::vector<simulator::Mapping>& mappings) = 0;

  // Only what these mapped stays, which is a part of what was: other pages are given back. What
  // went may be mapped again, with whatever bytes. Waits for the device. False: it cannot be waited
  // for now, and all stays. Cost: a call of the system's or the driver's for each run of pages that
  // goes, and O(n log n) of what stays.
  [[nodiscard]] virtual bool keep_only(const std::vector<simulator::Mapping>& mappings) = 0;

  // This process is a fork of the one that has the pages: a touch ends it.
  [[nodiscard]] bool is_forked() const { return process_forks() != forks_; }
  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] Bytes region_bytes() const { return region_bytes_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }  // of pages, once all are mapped

 protected:
  PagedMemory(Bytes bytes, Bytes region_bytes) : bytes_(bytes), region_bytes_(region_bytes) {}
  void set_begin(std::byte* begin) { begin_ = begin; }

 private:
  Bytes bytes_;
  Bytes region_bytes_;
  std::byte* begin_ = nullptr;
  std::int64_t forks_ = process_forks();
};

}  // namespace stowage::executor
