// How a process that has loaded LibTorch ends.
#pragma once

namespace stowage::cli {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// Ends the process with that exit code. LibTorch takes 0.3 s to take itself apart, in each of the
// processes that an answer is of: nobody waits for that, unless a plugin has something to do at its
// end, or a sanitizer looks for what leaks then.
[[noreturn]] void end_process(int code);

}  // namespace stowage::cli
