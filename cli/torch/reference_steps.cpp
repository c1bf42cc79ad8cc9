#include "cli/torch/reference_steps.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/torch/session.h"
#include "executor/planned_parameters.h"
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

std::optional<Bytes> memory_for_tensors(const Environment& device) {
  if (device.device_memory <= 0) return std::nullopt;
  return device.device_memory - device.context_bytes;
}

// Only the steps that are compared: nobody asks how long such ones take.
profiler::StepCourse::Options without_times(const MeasureOptions& options) {
  return {.steps = std::max<std::int64_t>(1, options.dumped_steps)};
}

Result<MeasuredRun> run_offloaded(Session& session, const TooLarge& why, MeasureOptions options) {
  const std::optional<Bytes> memory = memory_for_tensors(session.environment());
  const Bytes limit = memory.value_or(why.limit);
  session.set_memory_limit(limit);
  options.course = without_times(options);
  Result<MeasuredRun> run = guarded([&]() -> Result<MeasuredRun> {
    const Result<std::unique_ptr<profiler::OffloadedSteps>> steps =
        profiler::OffloadedSteps::create(session.device(), session.functions(), limit);
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
    error.hint = memory ? "verify where the device, or the machine, has more memory"
                        : "verify where the device has more memory, or without --memory-limit";
  }
  return error;
}

// On a CPU with one thread the device updates bit by bit as the host does (executor/host_parts.h).
bool is_hosts_arithmetic(const RunRequest& request) {
  return request.device != "cuda" && request.threads == 1;
}

// The model's tensors of the recording's rows.
Result<std::vector<at::Tensor>> host_updated_parameters(const PlanInputs& inputs,
                                                        Session& session) {
  const Result<const Trace*> recording =
      simulator::recording_in_parts(*inputs.trace, inputs.structure.parts);
  if (!recording) return recording.error();
  const std::vector<StorageId> rows = executor::parameter_rows(**recording);
  const std::vector<executor::StateStorage> storages =
      executor::state_storages(session.device(), session.step().parameters());
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < std::min(rows.size(), storages.size()); ++i) {
    const std::vector<StorageId>& updated = inputs.structure.host_updates;
    if (std::find(updated.begin(), updated.end(), rows[i]) == updated.end()) continue;
    for (const executor::NamedTensor& each : storages[i].tensors) tensors.push_back(each.tensor);
  }
  return tensors;
}

}  // namespace

std::string updated_on_host(const PlanInputs& inputs) {
  std::string text;
  if (is_hosts_arithmetic(inputs.request)) return text;
  for (const StorageId parameter : inputs.structure.host_updates) {
    text += (text.empty() ? "" : " ") + std::to_string(parameter.value);
  }
  return text;
}

bool has_times(const MeasuredRun& reference) {
  return !reference.too_large && !reference.facts.contains(kUpdatedOnHost);
}

Result<std::optional<TooLarge>> too_large(const PlanInputs& inputs, const Environment& device,
                                          std::optional<Bytes> limit) {
  if (!limit) limit = memory_for_tensors(device);
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
  if (!inputs.structure.host_updates.empty() && !is_hosts_arithmetic(inputs.request)) {
    Result<std::vector<at::Tensor>> parameters = host_updated_parameters(inputs, **session);
    if (!parameters) return std::move(parameters).error();
    (*session)->step().update_through_host(*parameters);
    options.course = without_times(options);
  }
  const Result<std::optional<TooLarge>> why = too_large(inputs, (*session)->environment(), limit);
  if (!why) return why.error();
  if (!*why) return measure(**session, nullptr, options);
  return run_offloaded(**session, **why, std::move(options));
}

}  // namespace stowage::cli
