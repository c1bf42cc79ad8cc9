// CudaPages: pages of a GPU's memory by the driver's virtual memory calls, each mapped at several
// addresses of one region, those of a chunk at once. What is written through one address is seen
// through another once the writing kernel or copy is done and the reader is ordered behind it. The
// driver is found at run time: a program that links this starts without one.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "executor/device/paged_memory.h"

namespace stowage::executor {

struct CudaMemoryCalls;  // the driver's

class CudaPages final : public PagedMemory {
 public:
  // Needs a started CUDA. Errors (environment): a driver or GPU without virtual memory, one whose
  // pages the placement's are no multiple of, no addresses.
  [[nodiscard]] static Result<std::unique_ptr<PagedMemory>> create(
      int device, const simulator::MemoryLayout& layout);
  // Waits for the GPU; where that is refused the pages stay for good.
  ~CudaPages() override;

  // Whole chunks. Error (condition): the GPU has no memory for one.
  [[nodiscard]] Status map(const std::vector<simulator::Mapping>& mappings) override;
  // Likewise.
  [[nodiscard]] bool keep_only(const std::vector<simulator::Mapping>& mappings) override;

 private:
  CudaPages(const CudaMemoryCalls& calls, int device, const simulator::MemoryLayout& layout);
  [[nodiscard]] Status map_chunk(Bytes address, std::size_t chunk);
  void unmap(Bytes from, Bytes to);
  // For its own GPU, whichever is the thread's. False: refused, as while a graph is captured.
  [[nodiscard]] bool wait() const;

  struct Run {  // of mapped addresses
    Bytes begin = 0;
    Bytes end = 0;
  };

  const CudaMemoryCalls& calls_;
  int device_;
  std::vector<Bytes> begins_;                         // of chunks, and the end of the last one
  std::vector<CUmemGenericAllocationHandle> chunks_;  // 0 = not made yet
  std::vector<Run> mapped_;
};

}  // namespace stowage::executor
