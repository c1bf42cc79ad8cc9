// Any bytes are a trace or an error; a trace is written and read again as the same one, and
// replayed.
#include "report/simulation.h"
#include "simulator/step/step_index.h"
#include "tests/fuzz/fuzzer.h"
#include "traces/trace_json.h"

using stowage::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = stowage::trace_from_json(stowage::fuzz::text_of(data, size), "t.json");
  if (!trace) {
    require(trace.error().code == stowage::ErrorCode::bad_input);
    return 0;
  }
  const std::string once = stowage::trace_to_json(*trace);
  const auto again = stowage::trace_from_json(once, "again.json");
  require(again.ok() && stowage::trace_to_json(*again) == once);
  const stowage::simulator::StepIndex index(*trace);
  const auto simulation = stowage::report::simulate(index, {}, "");
  require(simulation.ok() || simulation.error().code == stowage::ErrorCode::bad_input);
  return 0;
}
