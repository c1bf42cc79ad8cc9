// --pin and --pins: decisions that a search leaves alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::cli {

struct PinOptions {
  std::vector<std::string> pins;
  std::optional<std::string> file;

  [[nodiscard]] bool given() const { return !pins.empty() || file.has_value(); }
};

// `options` must outlive the parse.
void declare_pins(CommandLine& line, PinOptions& options);

// Rules of all of them (PlanRequest::pins). Errors: planner::join_pins(), a text that is no pin, a
// file that cannot be read or is for another trace.
[[nodiscard]] Result<simulator::Plan> pins_of(const PinOptions& options,
                                              const simulator::StepIndex& index);

}  // namespace stowage::cli
