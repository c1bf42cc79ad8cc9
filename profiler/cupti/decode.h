// CUPTI's activity buffers as plain records. The structs are those of CUPTI 13 (13.0 and later 13.x
// only append to them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "profiler/assembly/raw_activity.h"
#include "traces/result.h"

namespace stowage::profiler {

class ActivityDecoder {
 public:
  // Appends the records of one buffer, `valid` bytes of it. Records that carry no time are counted
  // only, and so are kinds that nobody asked for. The end of the records, or one that CUPTI itself
  // calls invalid, ends the buffer. Error (environment): what cuptiActivityGetNextRecord answers
  // else. Cost: O(records).
  [[nodiscard]] Status decode(std::uint8_t* buffer, std::size_t valid);

  // All records so far; the decoder is empty afterwards.
  [[nodiscard]] RawActivities take();

 private:
  std::int32_t name_row(const char* mangled);

  RawActivities records_;
  std::unordered_map<std::string, std::int32_t> rows_;
};

// "void at::native::vectorized_elementwise_kernel<4, ..>(int, ..)" of the mangled name: demangled,
// without parameters and what it returns, at most 160 characters.
[[nodiscard]] std::string kernel_name(const char* mangled);

}  // namespace stowage::profiler
