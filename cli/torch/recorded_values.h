// What a plan or a trace says of the step that it was made for, as a command would say it.
#pragma once

#include <string>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// Where it was read.
struct ReadFrom {
  std::string file;
  std::string run;     // JSON pointer of the object that has "model", "batch", "dtype", ..
  std::string device;  // JSON pointer of the device
};
[[nodiscard]] ReadFrom read_from_plan(const std::string& file);
[[nodiscard]] ReadFrom read_from_trace(const std::string& file);

// The step that a plan says it is for.
[[nodiscard]] Run said_by(const simulator::PlanTarget& target);

// Each value that is said (0 and empty say nothing) is one that a step can have. Errors: bad_input,
// with the value's own pointer, where the command line would have a usage error.
[[nodiscard]] Status check_recorded_values(const Run& run, const std::string& device,
                                           const ReadFrom& from);

}  // namespace stowage::cli
