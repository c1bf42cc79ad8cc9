// How much a trace may hold.
#pragma once

#include <cstddef>

namespace stowage {

inline constexpr std::size_t kMostDivided = 64;  // steps in micro-batches

// Whatever the file is packed to: a list of three bytes (`[],`) takes 24 in memory. A step of a
// million ops has about 30 million integers, 100,000 strings and 20,000 lists.
struct TraceLimits {
  std::size_t integers = std::size_t{1} << 27;  // of all columns and lists
  std::size_t texts = std::size_t{1} << 20;     // elements of all arrays of strings
  std::size_t lists = std::size_t{1} << 20;
  std::size_t divided = kMostDivided;
  std::size_t text_bytes = std::size_t{1} << 20;  // of one string
};

}  // namespace stowage
