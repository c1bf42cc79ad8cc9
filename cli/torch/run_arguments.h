// The options that `execute`, `verify` and their child processes share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/run_request.h"
#include "executor/planned_step.h"
#include "traces/units.h"

namespace stowage::cli {

struct RunArguments {
  std::optional<std::string> plan;
  std::optional<std::string> trace;
  std::optional<std::string> model;
  std::optional<std::int64_t> steps_given;
  std::optional<std::string> limit_given;
  std::optional<std::string> placement_given;
  RunFlags flags;
  std::int64_t steps = 0;  // until read() the default
  // After read():
  std::optional<Bytes> memory_limit;
  bool off_plan = false;
  bool quick = false;  // no more steps than were asked for, whatever else runs on the host
  std::optional<simulator::PlacementMode> placement;  // absent: the plan's

  // `steps_help`: what --steps counts in this verb, whose default is `default_steps`.
  void declare(CommandLine& line, const std::string& steps_help, std::int64_t default_steps);
  // With --distributed: plan, step and number of steps are the same on all ranks. Behind read().
  // Errors: those of RankStore::check_same().
  [[nodiscard]] Status check_ranks(const PlanInputs& inputs) const;
  // Checks what was given. Errors: usage, also where ranks would share standard input.
  [[nodiscard]] Status read();
};

}  // namespace stowage::cli
