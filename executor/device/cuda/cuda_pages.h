// CudaPages: pages of a GPU's memory by the driver's virtual memory calls, each mapped at several
// addresses of one region. What is written through one address is seen through another once the
// writing kernel or copy is done and the reader is ordered behind it. The driver is found at run
// time: a program that links this starts without one.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "executor/device/paged_memory.h"

namespace stowage::executor {

struct CudaMemoryCalls;  // the driver's

class CudaPages final : public PagedMemory {
 public:
  // `page`: what the driver's pages are a multiple of. Needs a started CUDA. Errors (environment):
  // a driver or GPU without virtual memory, one that has other pages, no addresses.
  [[nodiscard]] static Result<std::unique_ptr<PagedMemory>> create(int device, Bytes page,
                                                                   Bytes bytes, Bytes region_bytes);
  // Waits for the GPU.
  ~CudaPages() override;

  // Error (condition): the GPU has no memory for a page. Cost: about 30 us a mapped page, of 2 MiB.
  [[nodiscard]] Status map(const std::vector<simulator::Mapping>& mappings) override;

 private:
  CudaPages(const CudaMemoryCalls& calls, int device, Bytes page, Bytes bytes, Bytes region_bytes);
  [[nodiscard]] Status map_page(Bytes address, std::size_t page);

  struct Run {  // of mapped addresses
    Bytes begin = 0;
    Bytes end = 0;
  };

  const CudaMemoryCalls& calls_;
  int device_;
  Bytes page_;
  std::vector<CUmemGenericAllocationHandle> pages_;  // 0 = not made yet
  std::vector<Run> mapped_;
};

}  // namespace stowage::executor
