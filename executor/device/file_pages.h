// FilePages: the CPU device's pages, those of one memory file. Linux gives pages of zeros, and
// takes nothing before it is written to. A process that is forked does not have the region, whose
// pages would be shared with it: a touch ends it. There nothing is mapped or given back, as pages
// and addresses are the other process's, or somebody else's by then.
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
  void keep_only(const std::vector<simulator::Mapping>& mappings) override;

 private:
  FilePages(Bytes bytes, Bytes region_bytes);

  [[nodiscard]] bool is_forked() const;

  int file_ = -1;
  const int process_;
};

}  // namespace stowage::executor
