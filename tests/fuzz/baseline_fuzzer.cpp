// Any bytes are a baseline or an error; a baseline is written and read again as the same one.
#include "cli/baseline_json.h"
#include "tests/fuzz/fuzzer.h"

using stowage::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto baseline =
      stowage::cli::baseline_from_json(stowage::fuzz::text_of(data, size), "b.json");
  if (!baseline) {
    require(baseline.error().code == stowage::ErrorCode::bad_input);
    return 0;
  }
  const auto again =
      stowage::cli::baseline_from_json(stowage::cli::baseline_to_json(*baseline), "again.json");
  require(again.ok() && *again == *baseline);
  return 0;
}
