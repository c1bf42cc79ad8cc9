// Limits in tests are for the program as people get it. Under a sanitizer each access to memory is
// checked, and the same limits hold for what is this much slower. What counts cases by the thousand
// there takes every kStride-th: another case makes the same accesses.
#pragma once

namespace stowage::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
inline constexpr int kStride = 5;
#else
inline constexpr int kSlowdown = 1;
inline constexpr int kStride = 1;
#endif

}  // namespace stowage::testing
