// How often the process was forked to get here, for what a forked process does not have: memory
// that is not inherited, whose owner notes the number it was made with and compares.
#pragma once

#include <cstdint>

namespace stowage::executor {

// 0 in the process that asks first, one more in each fork of it; the same all life long but for
// that. Forks made ahead of the first call in a line of processes are not counted. Cost: a load.
// Thread-safe.
[[nodiscard]] std::int64_t process_forks();

}  // namespace stowage::executor
