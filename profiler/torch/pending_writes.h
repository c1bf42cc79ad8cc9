// PendingWrites: what a running op may still write into without anybody seeing it. Autograd saves
// some tensors ahead of the kernel that fills them (the noise of `rrelu_with_noise`), and counts no
// version: at the save such a tensor does not yet have the bytes that backward needs.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stowage::profiler {

class PendingWrites {
 public:
  // Ops of one thread, well nested. `op` has its inputs. Cost: a look into a table.
  void op_begin(const at::RecordFunction& op);
  void op_end();
  void clear();

  // Whether one of the running ops declares that it writes to this storage, and the tensor has
  // still the version that it had when the op began.
  [[nodiscard]] bool may_write(const at::Tensor& tensor) const;

 private:
  struct Write {
    std::size_t depth;  // of its op
    const c10::StorageImpl* storage;
    std::int64_t version;
  };

  // Positions of the arguments that the op's schema says are written to.
  [[nodiscard]] const std::vector<std::size_t>& written_arguments(const at::RecordFunction& op);

  std::size_t depth_ = 0;
  std::vector<Write> writes_;
  // By the name's address, which is the schema's own.
  std::unordered_map<const char*, std::vector<std::size_t>> written_arguments_;
};

}  // namespace stowage::profiler
