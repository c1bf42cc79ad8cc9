// How long tests may take. Limits are for the program as people get it: under a sanitizer each
// access to memory is checked, and the same limits hold for what is kSlowdown times slower.
#pragma once

#include <cstdlib>

namespace stowage::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

// What counts cases by the thousand takes every fifth; with STOWAGE_EVERY_CASE all of them, which a
// test with the label `full` does.
inline int stride() {
  return std::getenv("STOWAGE_EVERY_CASE") == nullptr ? 5 : 1;
}

}  // namespace stowage::testing
