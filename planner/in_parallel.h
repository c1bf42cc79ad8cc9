// Independent pieces of work on the machine's cores.
#pragma once

#include <cstddef>
#include <functional>

namespace stowage::planner {

// Calls work(0) .. work(count - 1), each once, in any order, on up to kMostThreads threads, the
// caller's among them; returns when all have. What one throws is thrown here, behind the others.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

inline constexpr std::size_t kMostThreads = 8;

}  // namespace stowage::planner
