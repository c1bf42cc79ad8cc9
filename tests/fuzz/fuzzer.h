// What each fuzzer in this folder is: one function that takes any bytes. clang's libFuzzer calls it
// (-DSTOWAGE_FUZZ=ON), or replay_corpus.cpp with the files of corpus/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace stowage::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process, which is what a fuzzer calls a finding.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace stowage::fuzz
