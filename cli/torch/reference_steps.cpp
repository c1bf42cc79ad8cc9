#include "cli/torch/reference_steps.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/torch/session.h"
#include "profiler/torch/offloaded_steps.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "simulator/step/unroll.h"

namespace stowage::cli {

namespace {

// In the counter that the device's limit is on: what the allocator has taken, where it has one.
Bytes bounded_peak(const simulator::ReplayResult& resident) {
  if (resident.peak_reserved >= 0) return resident.peak_reserved;
  return std::max(resident.peak_requested, resident.peak_active);
}

Result<MeasuredRun> run_offloaded(Session& session, const TooLarge& why, MeasureOptions options) {
  session.set_memory_limit(why.limit);
  options.course = {.steps = std::max<std::int64_t>(1, options.dumped_steps)};
  Result<MeasuredRun> run = guarded([&]() -> Result<MeasuredRun> {
    const Result<std::unique_ptr<profiler::OffloadedSteps>> steps =
        profiler::OffloadedSteps::create(session.device(), session.functions(), why.limit);
    if (!steps) return steps.error();
    options.offloaded = steps->get();
    return measure(session, nullptr, options);
  });
  if (run) {
    run->too_large = why;
    return run;
  }
  Error error = std::move(run).error();
  if (error.code == ErrorCode::condition) {
    error.message = "the reference, with everything offloaded, runs " + error.message;
    error.hint = "verify where the device has more memory, or without --memory-limit";
  }
  return error;
}

}  // namespace

Result<std::optional<TooLarge>> too_large(const PlanInputs& inputs, const Environment& device,
                                          std::optional<Bytes> limit) {
  if (!limit && device.device_memory > 0) limit = device.device_memory - device.context_bytes;
  if (!limit) return std::optional<TooLarge>();
  simulator::Structure in_parts;
  in_parts.parts = inputs.structure.parts;
  const Result<simulator::Step> step = simulator::unroll(*inputs.trace, in_parts);
  if (!step) return step.error();
  const simulator::StepIndex index(*step);
  const Bytes resident =
      bounded_peak(simulator::replay(index, simulator::resident_schedule(index)));
  if (resident <= *limit) return std::optional<TooLarge>();
  return std::optional(TooLarge{resident, *limit});
}

Result<MeasuredRun> run_reference_steps(const PlanInputs& inputs, std::optional<Bytes> limit,
                                        MeasureOptions options) {
  Result<std::unique_ptr<Session>> session = Session::create(inputs.request);
  if (!session) return session.error();
  const bool updates_on_host = !inputs.structure.host_updates.empty();
  if (updates_on_host && !(*session)->device().torch_device().is_cpu()) {
    return Error{ErrorCode::bad_input, "updates on the host cannot be verified on a GPU yet", "",
                 "/optimizer", "verify on the CPU, or execute the plan"};
  }
  const Result<std::optional<TooLarge>> why = too_large(inputs, (*session)->environment(), limit);
  if (!why) return why.error();
  if (!*why) return measure(**session, nullptr, options);
  return run_offloaded(**session, **why, std::move(options));
}

}  // namespace stowage::cli
