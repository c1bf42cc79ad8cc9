// Which op of PyTorch the calling thread is in, as a recording would name it ("aten::mul").
#pragma once

#include <string>

namespace stowage::executor {

// The innermost one that does more than to allocate; one that allocates where there is no other;
// empty: none, or the stack cannot be read. By the names on the stack, so that no op pays for it.
// Not under a lock that an allocation takes: it asks the loader for symbols. Cost: 5 to 30 ms.
[[nodiscard]] std::string allocating_op();

// For it: what a line of c10::get_backtrace() calls ("at::_ops::mul_Tensor::call(..)"), as the
// dispatcher names it, without its overload; empty: none of PyTorch's own.
[[nodiscard]] std::string op_of_frame(const std::string& line);

}  // namespace stowage::executor
