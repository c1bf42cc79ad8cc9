// Any bytes unpack, within a limit, or are an error; what was unpacked comes back when packed.
#include "tests/fuzz/fuzzer.h"
#include "traces/file_io.h"

using stowage::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMost = 1 << 16;
  const auto text = stowage::gunzip(stowage::fuzz::text_of(data, size), "t.gz", kMost);
  if (!text) {
    require(text.error().code == stowage::ErrorCode::bad_input);
    return 0;
  }
  require(static_cast<std::int64_t>(text->size()) <= kMost);
  const auto again = stowage::gunzip(stowage::gzip(*text), "again.gz", kMost);
  require(again.ok() && *again == *text);
  return 0;
}
