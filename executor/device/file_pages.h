// FilePages: the CPU device's pages, those of one memory file. Linux gives pages of zeros, and
// takes nothing before it is written to. A fork of the process does not have the pages, which would
// be shared with it: a touch ends it. Their addresses stay taken there, so that nothing else comes
// to lie where the other process's tensors seem to be, and nothing is mapped or given back.
#pragma once

#include <memory>
#include <vector>

#include "executor/device/paged_memory.h"

namespace stowage::executor {

class FilePages final : public PagedMemory {
 public:
  // Of `bytes` of memory in a region of `region_bytes`; whole pages of the system. Error
  // (environment): the system refuses, or the memory is more than the machine can give now.
  [[nodiscard]] static Result<std::unique_ptr<PagedMemory>> create(Bytes bytes, Bytes region_bytes);
  ~FilePages() override;

  // Cost: about 2 us a mapping.
  [[nodiscard]] Status map(const std::vector<simulator::Mapping>& mappings) override;
  // False: in a fork.
  [[nodiscard]] bool keep_only(const std::vector<simulator::Mapping>& mappings) override;

 private:
  using PagedMemory::PagedMemory;

  int file_ = -1;
};

}  // namespace stowage::executor
