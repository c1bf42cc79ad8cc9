// KeptReference: the runs without a plan of one verification, in a file (docs/cli.md, verify
// --reference): for every other plan of that step only the planned run is left to be made.
#pragma once

#include <cstdint>
#include <string>

#include "cli/torch/measured_run.h"
#include "executor/tensor_dump.h"
#include "traces/result.h"

namespace stowage::cli {

struct KeptReference {
  MeasuredRun run;
  std::int64_t compared_steps = 0;
  executor::DumpDifference repeatability;  // of a second run against it
  std::string dump;                        // what its TensorDumpWriter wrote, digests
};

// Why the run does not stand for `now` and so many compared steps: "seed (1, now 2), .."; empty
// when it does.
[[nodiscard]] std::string differences(const KeptReference& kept, const MeasuredRun& now,
                                      std::int64_t compared_steps);

// Error (bad_input): not readable, or not a file that save_reference() wrote.
[[nodiscard]] Result<KeptReference> load_reference(const std::string& file);
// Atomically (traces/file_io.h).
[[nodiscard]] Status save_reference(const std::string& file, const KeptReference& reference);

}  // namespace stowage::cli
