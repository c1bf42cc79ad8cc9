// Which op of PyTorch the calling thread is in, as a recording would name it ("aten::mul").
#pragma once

#include <string>

namespace stowage::executor {

// The innermost one that does more than to allocate; one that allocates where there is no other;
// empty: none, or the stack cannot be read. By the names on the stack, so that no op pays for it.
// Cost: some ms.
[[nodiscard]] std::string allocating_op();

// For it: what a line of c10::get_backtrace() calls ("at::_ops::mul_Tensor::call(..)"), as the
// dispatcher names it, without its overload; empty: no op. Cost: O(ops).
[[nodiscard]] std::string op_of_frame(const std::string& line);

}  // namespace stowage::executor
