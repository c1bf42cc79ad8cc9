// What runs report, as JSON: between our own processes and to the user.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/torch/measured_run.h"
#include "executor/tensor_dump.h"
#include "profiler/torch/recording.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// Between a process and its child; the reader refuses what the writer did not write.
[[nodiscard]] std::string clean_results_to_json(const profiler::CleanResults& results);
[[nodiscard]] Result<profiler::CleanResults> clean_results_from_json(const std::string& text);
[[nodiscard]] std::string measured_run_to_json(const MeasuredRun& run);
[[nodiscard]] Result<MeasuredRun> measured_run_from_json(const std::string& text);

// `stowage profile --json`.
[[nodiscard]] std::string profile_json(const Trace& trace, const std::string& trace_file);

// `stowage execute --json`; `micro_batches`: "head in 4 parts", or empty; `failures`: budgets of
// the plan that the run is above; `caching_reserved`: PlanInputs::caching_reserved.
[[nodiscard]] std::string execute_json(const Trace& trace, const MeasuredRun& run,
                                       const simulator::Predicted& predicted,
                                       Bytes caching_reserved,
                                       const std::vector<std::string>& failures,
                                       const std::string& plan_file, const std::string& trace_file,
                                       const std::string& micro_batches);

struct Verification {
  std::string plan_file;
  std::string trace_file;
  MeasuredRun reference;
  MeasuredRun planned;
  simulator::Predicted predicted;
  Bytes caching_reserved = -1;             // PlanInputs::caching_reserved
  executor::DumpDifference difference;     // planned against reference
  executor::DumpDifference repeatability;  // reference against itself
  // The planned run against the step with all of the batch at once, which is other arithmetic;
  // none without micro-batches, and where that step does not fit.
  std::optional<executor::DumpDifference> beside_plain{};
  std::string micro_batches;  // "head in 4 parts"; empty: none
  bool attributes = false;    // it is of an attribution step
  std::int64_t compared_steps = 0;
  std::string reference_file;  // where the reference is kept; empty = nowhere
  bool reference_reused = false;
  bool quick = false;                 // of few steps
  std::vector<std::string> failures;  // one line for each demand that is not met
  [[nodiscard]] bool passed() const { return failures.empty(); }
  // The wider one of both runs.
  [[nodiscard]] Ppm spread() const { return std::max(planned.spread, reference.spread); }
};

// `stowage verify --json`, and what `demo-report` reads.
[[nodiscard]] std::string verification_json(const Trace& trace, const Verification& verification);

// `stowage models --json`.
[[nodiscard]] std::string models_json(const std::vector<executor::ModelInfo>& models);

// What this build and machine can run on.
struct TorchDoctor {
  Environment cpu;
  std::int64_t threads = 0;
  bool cuda_built = false;
  std::optional<Environment> gpu;
  std::string no_gpu_because;  // empty when there is one
  std::string link;            // of the GPU to the host, empty = not known
};

// `stowage-torch doctor --json`.
[[nodiscard]] std::string doctor_json(const TorchDoctor& doctor);

}  // namespace stowage::cli
