// The options of `check`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/memory_check.h"
#include "cli/torch/run_request.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::cli {

struct CheckOptions {
  std::optional<std::string> plan;
  std::optional<std::string> trace;
  std::optional<std::string> model;
  std::optional<std::int64_t> steps;
  std::optional<std::string> baseline;
  bool update = false;
  std::optional<std::string> budget_text;
  std::optional<std::string> budget_on_text;
  std::optional<std::string> placement_text;
  std::optional<std::string> tolerance_text;
  std::optional<std::string> stall_tolerance_text;
  std::optional<std::string> junit;
  std::optional<std::string> name;
  RunFlags flags;
  // After read():
  std::optional<Bytes> budget;
  std::optional<simulator::PeakKind> budget_on;
  std::optional<simulator::PlacementMode> placement;  // absent: the plan's
  Tolerances tolerances;

  void declare(CommandLine& line);
  // Checks what was given, the files that are to be written included. Errors: usage, environment.
  [[nodiscard]] Status read();

 private:
  [[nodiscard]] Status check_what_is_asked() const;
  [[nodiscard]] Status check_files() const;
  [[nodiscard]] Status read_limits();
};

}  // namespace stowage::cli
