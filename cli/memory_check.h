// `stowage check` as values: what was measured, judged against a baseline and a budget. Printed by
// check_text, check_json and check_junit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/baseline.h"
#include "report/growth.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::cli {

enum class CaseOutcome : std::uint8_t { passed, failed, skipped };
[[nodiscard]] const char* name_of(CaseOutcome value);

// One line of the answer, one test case of the JUnit file.
struct CheckCase {
  std::string name;  // see cases_of()
  CaseOutcome outcome = CaseOutcome::passed;
  std::string message;  // one line: why, or what was found
  // Bytes, of `stall` nanoseconds; absent where there is no such number.
  std::optional<std::int64_t> measured;
  std::optional<std::int64_t> baseline;
  std::optional<std::int64_t> limit;  // the most that passes
  bool can_be_lowered = false;        // better than the baseline by more than the tolerance
  std::vector<report::Growth> grew;   // of a failed case of bytes: what holds more now
  std::vector<std::string> details;   // further lines
};

// How much more than the baseline passes. Bytes in parts per million of the baseline's; the stall
// in parts per million of its step time.
struct Tolerances {
  // Requested and host bytes are functions of program order alone: 0 is not too strict.
  Ppm exact = 0;
  // Active and reserved bytes depend on what the allocator did before the step, too.
  Ppm allocator = 10'000;
  Ppm stall = 20'000;
};

struct CheckInput {
  StepCost now;
  std::optional<Baseline> baseline;
  std::vector<std::string> incomparable;  // differences() to it
  std::optional<Bytes> budget;
  simulator::PeakKind budget_on = simulator::PeakKind::active;
  Tolerances tolerances;
  std::string stall_not_judged;     // why; empty: it is judged
  std::string reserved_not_judged;  // likewise, against a baseline; a budget on it always is
};

// In this order: `baseline` (it is comparable), `peak_requested`, `peak_active`, `peak_reserved`,
// `host_bytes`, `stall` (no more than the baseline's), `budget`; each only where there is a
// baseline or a budget. Quantities that are not judged (the device has no such counter, the
// baseline is not comparable) are skipped and say why.
[[nodiscard]] std::vector<CheckCase> cases_of(const CheckInput& input);

// Gives failed cases of bytes the storages that make them: `now` against the baseline's, or without
// one what is largest now.
void explain(std::vector<CheckCase>& cases, const std::optional<Baseline>& baseline,
             const report::PeakContent& now);

[[nodiscard]] bool all_passed(const std::vector<CheckCase>& cases);

struct CheckReport {
  std::string name;  // of the whole, for the JUnit file
  std::string plan_file;
  std::string baseline_file;
  bool baseline_written = false;
  StepIdentity step;
  MadeWith made_with;
  std::optional<StepCost> measured;  // absent when the step did not run
  std::vector<CheckCase> cases;
  [[nodiscard]] bool passed() const { return all_passed(cases); }
};

// "1%", "0.5%", "0": a share in parts per million. Errors: usage.
[[nodiscard]] Result<Ppm> parse_share(const std::string& option, const std::string& text);

}  // namespace stowage::cli
