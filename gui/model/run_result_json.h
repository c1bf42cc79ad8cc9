// What a real run measured, as `stowage execute --json` and `stowage verify --json` print it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::gui {

// Absent values were null or not there: that device has no such number.
struct MeasuredFigures {
  std::optional<Bytes> peak_requested;
  std::optional<Bytes> peak_active;
  std::optional<Bytes> peak_reserved;
  std::optional<Bytes> host;
  std::optional<Nanoseconds> step;
  std::optional<Nanoseconds> stall;
};

struct RunResult {
  std::string file;    // that it was read from
  std::string schema;  // "stowage-execute/1" or "stowage-verify/1"
  MeasuredFigures measured;
  MeasuredFigures predicted;  // when the run was made
  std::vector<MeasuredFigures> steps;
  std::optional<MeasuredFigures> reference;  // of verify
  std::optional<bool> bitwise;               // of verify: losses and gradients equal
  bool on_plan = true;
  std::string first_difference;  // why it was not on plan
  std::vector<std::string> warnings;
  std::string plan_file;  // as the command was given them: relative to where it ran
  std::string trace_file;
};

// Total: any bytes give a result or an Error (bad_input, with `file` and a JSON pointer): no JSON,
// nested deeper than 32, another schema, a number of the wrong kind, no `measured`.
[[nodiscard]] Result<RunResult> run_result_from_json(std::string_view text,
                                                     const std::string& file);

}  // namespace stowage::gui
