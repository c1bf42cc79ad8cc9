// PagedMemory: pages of memory, each at several addresses of one region. The CPU device's memory of
// a planned step (simulator/placement/memory_layout.h), as CUDA's virtual memory calls make it of a
// GPU's. Nothing is taken before it is written to; Linux gives pages of zeros.
// A process that is forked does not have the region: a touch ends it.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/placement/memory_layout.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

class PagedMemory {
 public:
  // `mappings`: of `bytes` of memory, in a region of `region_bytes`; whole pages of the system. The
  // rest of the region may not be touched. Error (environment): the system refuses, or the memory
  // is more than the machine can give now. Cost: about 2 us a mapping.
  [[nodiscard]] static Result<PagedMemory> create(Bytes bytes, Bytes region_bytes,
                                                  const std::vector<simulator::Mapping>& mappings);
  // The pages are the system's again.
  ~PagedMemory();
  PagedMemory(PagedMemory&& other) noexcept;
  PagedMemory& operator=(PagedMemory&&) = delete;

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] Bytes region_bytes() const { return region_bytes_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  PagedMemory(Bytes bytes, Bytes region_bytes) : bytes_(bytes), region_bytes_(region_bytes) {}

  Bytes bytes_;
  Bytes region_bytes_;
  std::byte* begin_ = nullptr;
};

}  // namespace stowage::executor
