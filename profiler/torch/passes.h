// The passes of one recording, on any step that somebody can run: the built-in models' and a user's
// own training loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "executor/device/device.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/torch/measured_host_updates.h"
#include "profiler/torch/state_pager.h"
#include "profiler/torch/step_recorder.h"
#include "traces/result.h"

namespace stowage::profiler {

// A step that can be run again and again and does the same each time.
struct StepFunctions {
  // Puts batch number k into the input tensors; outside the step. May be empty.
  std::function<void(std::int64_t index)> prepare;
  // zero_grad, forward, backward, optimizer; leaves nothing behind but gradients and state.
  std::function<void()> step;
  // What exists now, with its class.
  std::function<RegisteredTensors()> registered;
  // Makes the optimizer's state as far as there is none, without memory
  // (executor::Optimizer::make_state). May be empty: then the first step makes it.
  std::function<void()> make_state{};
  // All gradients are there at the end of backward. False: an update takes each as it arrives.
  bool gradients_last = true;
  // Autocast keeps a copy of the parameters in two bytes until forward has ended.
  bool casts_parameters = false;
  // What the host would do in the place of its updates.
  HostUpdateKind updates{};
};

struct PassOptions {
  std::int64_t warmup = 3;  // steps before anything is recorded; at least 1
  // The others are the most; a long step is run less often (step_budget.h).
  // Clean steps; 4 at least, up to 8 s. More when the host was busy (quiet_steps.h).
  std::int64_t steps = 10;
  std::int64_t structure = 3;  // structure steps, for the median of event times; 2 at least, 6 s
  // Steps recorded with the GPU's activity, of which one is kept. 2 at least, 5 s; more when the
  // host was busy.
  std::int64_t timing = 5;
  // On a GPU: run more clean and timing steps than these until some were not disturbed. False where
  // the number of steps must be known (an optimizer counts them).
  bool wait_for_quiet = true;
  // A clean step's time, when it is known: timing steps are run until some are at most 2 % slower.
  Nanoseconds clean_step_ns = 0;
  // Every saved tensor leaves in every step, the warm-up too: for a step that does not fit with
  // everything kept. There is no structure pass then.
  bool everything_offloaded = false;
  // Device bytes that the step may use, 0 = all that the device has. With everything offloaded a
  // quarter of it is for model state, the rest of which is on the host meanwhile (StatePager).
  Bytes memory_limit = 0;
  // Behind the passes all of it comes back to the device, and it is an error when it does not fit.
  // False: the model is of no use any more.
  bool restores_state = true;
  // With everything offloaded: what a step writes to the optimizer's state is there in the next
  // one. A recording needs no training, and the host need not hold that state.
  bool trains = false;
  // In every step that is observed; steps of the caller's that are not observed do the same.
  RunsAgain again{};
  // Called before each part of a recording with its name, between steps, by the calling thread. May
  // be empty. An exception ends the recording and passes through, as the step's do.
  std::function<void(std::string_view part)> progress{};

  void report(std::string_view part) const {
    if (progress) progress(part);
  }
};

// Runs warm-up and clean steps: step time (QuietSteps), and the peaks, which must be equal in all
// of them. Error (bad_input): they are not. Exceptions of the step (out of memory among them) pass
// through.
[[nodiscard]] Result<CleanPass> run_clean_pass(executor::Device& device, const StepFunctions& step,
                                               const PassOptions& options);

struct ObservedPasses {
  RawPass structure;
  std::vector<std::vector<std::int64_t>> more_times;
  RawPass offload_all;
  std::vector<RawSetup> setup;
  std::int64_t adopted = 0;  // SetupHistory's
};

// All that it has; 0 = nobody knows.
[[nodiscard]] Bytes device_memory(const executor::Device& device);
// What of a limit model state has that comes and goes.
[[nodiscard]] Bytes state_share(Bytes memory_limit);

// For a step with everything offloaded: what its steps are observed with. Null where everything is
// kept, and where model state cannot leave. Errors: StatePager::create(). restore() of a null one
// does nothing.
[[nodiscard]] Result<std::unique_ptr<StatePager>> make_pager(executor::Device& device,
                                                             const StepFunctions& step,
                                                             const PassOptions& options);
[[nodiscard]] Status restore(StatePager* pager, const PassOptions& options);

// Runs warm-up, the structure steps (none with everything_offloaded) and one offload_all step.
// Batches are numbered on from `first_index`. A pass that throws leaves the device and the driver
// clean.
[[nodiscard]] Result<ObservedPasses> run_observed_passes(executor::Device& device,
                                                         const StepFunctions& step,
                                                         const PassOptions& options);

}  // namespace stowage::profiler
