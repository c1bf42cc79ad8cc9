// The processes of one verification: the planned run, and the two runs without a plan, which a file
// may keep for the next verification (kept_reference_json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/torch/child_process.h"
#include "cli/torch/kept_reference_json.h"
#include "cli/torch/measured_run.h"
#include "executor/tensor_dump.h"
#include "traces/result.h"

namespace stowage::cli {

struct VerifiedRun {
  MeasuredRun run;
  ScratchFile dump;  // of the compared steps
};

// `mode` is "reference", "plain" or "planned"; `arguments` are those of run-steps that say what to
// run. At least twelve steps are run; of long ones fewer, five steady ones among them; of "plain",
// whose times do not count, those that are compared.
[[nodiscard]] Result<VerifiedRun> run_in_child(const std::string& mode, std::int64_t compared_steps,
                                               const std::vector<std::string>& arguments);

struct Reference {
  MeasuredRun run;
  executor::DumpDifference repeatability;  // of a second run against it
  ScratchFile dump;
  bool reused = false;  // neither was run now
  std::string note;     // why the one in the file was not reused, if there was one
};

// What a file keeps, nothing when there is no such file. Error (bad_input): it is something else.
[[nodiscard]] Result<std::optional<KeptReference>> find_reference(const std::string& file);

// The reference of `planned`: `kept` when it is of the same step, else it is run, and kept in
// `file` unless that is empty.
[[nodiscard]] Result<Reference> reference_of(const MeasuredRun& planned,
                                             const std::optional<KeptReference>& kept,
                                             const std::string& file, std::int64_t compared_steps,
                                             const std::vector<std::string>& arguments,
                                             double tolerance);

// Of a plan with micro-batches: its run against the same steps with all of the batch at once. None
// where these run out of memory.
[[nodiscard]] Result<std::optional<executor::DumpDifference>> beside_plain(
    const VerifiedRun& planned, std::int64_t compared_steps,
    const std::vector<std::string>& arguments);

}  // namespace stowage::cli
