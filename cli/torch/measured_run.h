// MeasuredRun: steps of a session, with a plan or without, and what they needed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/torch/session.h"
#include "executor/planned_step.h"
#include "executor/tensor_dump.h"
#include "profiler/torch/offloaded_steps.h"
#include "profiler/torch/step_course.h"
#include "traces/result.h"

namespace stowage::cli {

struct MeasuredStep {
  Bytes peak_requested = 0;
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;
  Nanoseconds step_ns = 0;
  Nanoseconds stall_ns = -1;         // -1: not measured in this step
  Bytes unplanned_stored_bytes = 0;  // see StepReport
  Nanoseconds host_update_ns = 0;    // likewise
  double loss = 0;
  std::int64_t collectives = -1;  // that this rank began; -1: there is one rank
};

// A step that needs more with everything kept (predicted) than the device may give: in the counter
// that the device's limit is on.
struct TooLarge {
  Bytes resident = 0;
  Bytes limit = 0;
};

// A fact of a run in which the host updates parameters: which ones.
inline constexpr const char* kUpdatedOnHost = "updated on the host in parts";

struct MeasuredRun {
  std::vector<MeasuredStep> steps;
  // Why everything was offloaded, op by op (profiler/torch/offloaded_steps.h), if it was: then its
  // peaks and times are not those of the step without a plan.
  std::optional<TooLarge> too_large;
  Bytes host_bytes = 0;  // that copies reached: PlannedStep::host_high_water()
  // Over the steady steps, from the third on (all of them when there are fewer): the largest peak
  // and the median times. On a GPU a stall that is measured makes its step longer, so the last few
  // steady steps have their stalls measured and the others their time, where there are
  // enough; with StepCourse::Options::patience step_ns is the median of the quietest window.
  Bytes peak_requested = 0;
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;
  Nanoseconds step_ns = 0;
  Ppm spread = 0;  // of the steady steps whose time counts: profiler::spread_of()
  Nanoseconds stall_ns = 0;
  Nanoseconds host_update_ns = 0;
  Bytes used_bytes = -1;       // Device::used_bytes() behind the last step
  bool peaks_constant = true;  // requested
  bool active_constant = true;
  bool reserved_constant = true;
  // The most that one of them stored of parameters beside its plan.
  Bytes unplanned_stored_bytes = 0;
  // Times that memory was taken from the driver and host memory pinned from the end of the first
  // step on; -1 = the device has no such number.
  std::int64_t driver_allocations_after_first_step = -1;
  std::int64_t pinned_after_first_step = -1;
  // Of --distributed: how many ranks there are, and the most collectives that this one began in a
  // steady step.
  std::int64_t ranks = 1;
  std::int64_t collectives = -1;
  std::vector<std::string> warnings;                 // the device's
  std::optional<executor::StepMemoryReport> memory;  // of planned memory
  std::string other_allocator;                       // Device::other_allocator()
  std::string look_ahead;  // PlannedStep::look_ahead(); empty without a plan
  // From the schedule's steps; true and empty without a plan.
  bool on_plan = true;
  std::string first_difference;
  std::int64_t off_plan_packs = 0;
  // Of parameters that stream, in the last step, as planned.
  Bytes loaded_bytes = 0;
  Bytes stored_bytes = 0;
  // What must be the same for this run to stand for another one, in words: "seed" -> "1".
  std::map<std::string, std::string> facts;
};

struct MeasureOptions {
  profiler::StepCourse::Options course;
  std::int64_t first_batch = 0;   // of the first step; the next one has the next
  std::int64_t dumped_steps = 0;  // the first so many steps go into `dump`
  int dump_descriptor = -1;
  Bytes most_dumped_bytes = executor::TensorDumpWriter::kMostBytes;  // of a step, not as digests
  // Behind each step: how many are done, and how many were asked for.
  std::function<void(std::int64_t done, std::int64_t steps)> progress;
  // Which parameters the host updates, where the device would compute something else; empty: none.
  std::string updated_on_host;
  // The session's, where they run offloaded; only without a plan.
  profiler::OffloadedSteps* offloaded = nullptr;
};

// Runs steps as `options` says; `plan` null = nothing moves, or all of it with
// options.offloaded. Errors: what a step throws (guarded), a step that is not the plan's.
[[nodiscard]] Result<MeasuredRun> measure(Session& session, executor::PlannedStep* plan,
                                          const MeasureOptions& options);

}  // namespace stowage::cli
