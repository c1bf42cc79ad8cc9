// Limits in tests are for the program as people get it. Under a sanitizer each access to memory is
// checked, and the same limits hold for what is this much slower.
#pragma once

namespace stowage::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

}  // namespace stowage::testing
