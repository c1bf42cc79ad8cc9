#include "cli/pin_options.h"

#include <utility>

#include "cli/plan_file.h"
#include "planner/pin_text.h"
#include "simulator/plan/target_check.h"

namespace stowage::cli {

void declare_pins(CommandLine& line, PinOptions& options) {
  line.option("--pin", "NAME=DECISION", options.pins,
              "auto leaves that as it says and decides the rest, such as 'layers.0.*=keep'; may be "
              "repeated");
  line.input("--pins", "P", options.file,
             "auto leaves all that this plan's rules name as they say");
  line.detail(
      "--pin: SITE=keep, offload or recompute; layer:LAYER=recompute; params:LAYER=keep, stream,\n"
      "forward or backward; optimizer:LAYER=keep, stream or host; gradients:LAYER=keep or host.\n"
      "Names are patterns, as in a plan.");
}

Result<simulator::Plan> pins_of(const PinOptions& options, const simulator::StepIndex& index) {
  std::vector<planner::PinSource> sources;
  if (options.file) {
    Result<simulator::Plan> plan = load_plan(*options.file);
    if (!plan) return plan.error();
    if (const Status fits = simulator::check_target(*plan, *options.file, index.trace()); !fits) {
      return fits.error();
    }
    sources.push_back({std::move(plan).value(), *options.file, ""});
  }
  for (const std::string& text : options.pins) {
    Result<simulator::Plan> plan = planner::pin_from_text(text);
    if (!plan) {
      Error error = std::move(plan).error();
      error.message = "--pin: " + error.message;
      return error;
    }
    sources.push_back({std::move(plan).value(), "", "--pin " + text});
  }
  if (sources.empty()) return simulator::Plan{};
  return planner::join_pins(index, sources);
}

}  // namespace stowage::cli
