// Any bytes are a plan or an error; a plan is written and read again as the same text, and run on a
// step that it may have been made for.
#include "report/simulation.h"
#include "simulator/plan/plan_json.h"
#include "simulator/step/step_index.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/support/small_trace.h"

using stowage::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto plan = stowage::simulator::plan_from_json(stowage::fuzz::text_of(data, size), "p.json");
  if (!plan) {
    require(plan.error().code == stowage::ErrorCode::bad_input);
    return 0;
  }
  const std::string once = stowage::simulator::plan_to_json(*plan);
  const auto again = stowage::simulator::plan_from_json(once, "again.json");
  require(again.ok() && stowage::simulator::plan_to_json(*again) == once);
  static const stowage::Trace trace = stowage::testing::small_trace(2);
  static const stowage::simulator::StepIndex index(trace);
  plan->budget = {};  // a percentage has no bytes yet
  const auto simulation = stowage::report::simulate(index, *plan, "p.json");
  require(simulation.ok() || simulation.error().code == stowage::ErrorCode::bad_input);
  return 0;
}
