// Reads what `stowage verify --json` prints ("stowage-verify/1"), as far as a table needs it.
#pragma once

#include <optional>
#include <string>

#include "traces/result.h"
#include "traces/units.h"

namespace stowage::cli {

struct VerifyFacts {
  bool passed = false;
  bool bitwise = false;
  double max_abs_diff = 0;
  std::int64_t steps = 0;
  std::string reference_kind;
  std::optional<bool> repeatable;
  // Absent = null or not there.
  std::optional<Bytes> reference_peak;
  std::optional<Nanoseconds> reference_step;
  std::optional<Bytes> measured_peak;
  std::optional<Bytes> measured_active;
  std::optional<Bytes> measured_reserved;
  std::optional<Nanoseconds> measured_step;
  std::optional<Nanoseconds> measured_stall;
  std::optional<Bytes> measured_host;
  std::optional<Bytes> predicted_peak;
  std::optional<Nanoseconds> predicted_step;
  std::optional<Nanoseconds> predicted_stall;
  std::optional<Bytes> predicted_host;
};

// Total. Errors (bad_input) name `file` and the JSON pointer: not JSON, nested too deeply, another
// schema, a key of the wrong kind, one of passed, bitwise, planned/peak_requested_bytes,
// predicted/peak_requested_bytes missing.
[[nodiscard]] Result<VerifyFacts> read_verify(const std::string& text, const std::string& file);

}  // namespace stowage::cli
