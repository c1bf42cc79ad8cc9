#include "cli/torch/measured_run.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "simulator/step/unroll.h"

namespace stowage::cli {

namespace {

Nanoseconds median(std::vector<Nanoseconds> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

Bytes bytes_of(const std::vector<executor::NamedTensor>& tensors) {
  Bytes bytes = 0;
  for (const executor::NamedTensor& each : tensors) {
    if (each.tensor.defined()) bytes += static_cast<Bytes>(each.tensor.nbytes());
  }
  return bytes;
}

using Tensors = std::vector<executor::NamedTensor>;

// With their bytes of now; `plan` and `offloaded` know where they are, null = in their own memory.
Tensors values_of(const Tensors& tensors, executor::PlannedStep* plan,
                  profiler::OffloadedSteps* offloaded) {
  if (plan != nullptr) return plan->values(tensors);
  return offloaded != nullptr ? offloaded->values(tensors) : tensors;
}

Status dump_step(Session& session, executor::PlannedStep* plan, profiler::OffloadedSteps* offloaded,
                 std::int64_t step, double loss, executor::TensorDumpWriter& writer) {
  const Tensors gradients = values_of(session.step().gradients(), plan, offloaded);
  const Tensors parameters =
      plan != nullptr ? plan->values() : values_of(session.step().parameters(), nullptr, offloaded);
  const Tensors state = values_of(session.step().written_optimizer_state(), plan, offloaded);
  const Tensors buffers = session.step().buffers();
  writer.choose_form(bytes_of(gradients) + bytes_of(session.step().attributions()) +
                     bytes_of(parameters) + bytes_of(state) + bytes_of(buffers));
  if (Status status = writer.add_loss(step, loss); !status) return status;
  for (const auto& gradient : gradients) {
    if (Status status = writer.add(step, "gradient", gradient); !status) return status;
  }
  for (const auto& attribution : session.step().attributions()) {
    if (Status status = writer.add(step, "attribution", attribution); !status) return status;
  }
  for (const auto& parameter : parameters) {
    if (Status status = writer.add(step, "parameter", parameter); !status) return status;
  }
  for (const auto& each : state) {
    if (Status status = writer.add(step, "optimizer state", each); !status) return status;
  }
  for (const auto& buffer : buffers) {
    // An expanded mask or another one of the user's; nobody writes to such a tensor.
    if (!buffer.tensor.defined() || !buffer.tensor.is_non_overlapping_and_dense()) continue;
    if (Status status = writer.add(step, "buffer", buffer); !status) return status;
  }
  return Unit{};
}

std::map<std::string, std::string> facts_of(const Session& session) {
  const Run run = session.run();
  const Environment env = session.environment();
  return {
      {"micro-batches",
       session.micro_batches().empty() ? "none" : simulator::parts_text(session.micro_batches())},
      {"compared", "loss, gradients, attributions, parameters, optimizer state, buffers"},
      {"model", run.model},
      {"batch", std::to_string(run.batch)},
      {"seq", std::to_string(run.seq)},
      {"dtype", run.dtype},
      {"autocast", run.autocast.empty() ? "none" : run.autocast},
      {"optimizer", run.optimizer},
      {"gradient scaler", run.grad_scaler.empty() ? "none" : run.grad_scaler},
      {"seed", std::to_string(run.seed)},
      {"threads", std::to_string(run.threads)},
      {"deterministic", run.deterministic ? "yes" : "no"},
      {"device", env.device},
      {"device name", env.device_name},
      {"allocator", env.allocator},
      {"torch", env.torch}};
}

void summarize(MeasuredRun& run, const profiler::StepCourse& course) {
  const std::size_t first =
      std::min(std::size_t{profiler::StepCourse::kSteadyFrom}, run.steps.size() - 1);
  std::vector<Nanoseconds> times;
  std::vector<Nanoseconds> stalls;
  std::vector<Nanoseconds> host_updates;
  for (std::size_t i = first; i < run.steps.size(); ++i) {
    const MeasuredStep& step = run.steps[i];
    if (i > first && step.peak_requested != run.peak_requested) run.peaks_constant = false;
    if (i > first && step.peak_active != run.peak_active) run.active_constant = false;
    if (i > first && step.peak_reserved != run.peak_reserved) run.reserved_constant = false;
    run.peak_requested = std::max(run.peak_requested, step.peak_requested);
    run.peak_active = std::max(run.peak_active, step.peak_active);
    run.peak_reserved = std::max(run.peak_reserved, step.peak_reserved);
    run.collectives = std::max(run.collectives, step.collectives);
    run.unplanned_stored_bytes = std::max(run.unplanned_stored_bytes, step.unplanned_stored_bytes);
    times.push_back(step.step_ns);
    host_updates.push_back(step.host_update_ns);
    if (step.stall_ns >= 0) stalls.push_back(step.stall_ns);
  }
  const bool has_steady = run.steps.size() > std::size_t{profiler::StepCourse::kSteadyFrom};
  run.step_ns = has_steady ? course.step_ns() : median(times);
  run.spread = has_steady ? course.spread() : 0;
  run.stall_ns = median(stalls);
  run.host_update_ns = median(host_updates);
}

// The loss.
Result<double> run_step(Session& session, profiler::OffloadedSteps* offloaded) {
  if (offloaded == nullptr) return session.step().step();
  if (Status status = offloaded->step(); !status) return status.error();
  return session.last_loss();
}

Result<MeasuredRun> run_steps(Session& session, executor::PlannedStep* plan,
                              const MeasureOptions& options) {
  executor::Device& device = session.device();
  MeasuredRun run;
  executor::MemoryStats after_first;
  executor::TensorDumpWriter writer(device, options.dump_descriptor, options.most_dumped_bytes);
  profiler::StepCourse course(device.torch_device().is_cuda(), options.course);
  for (std::int64_t k = 0; course.wants_more(); ++k) {
    session.step().prepare(options.first_batch + k);
    device.synchronize();
    device.reset_peak();
    const bool measures_stalls = course.measures_stalls();
    device.time_stalls(measures_stalls);
    MeasuredStep measured;
    const std::optional<std::int64_t> collectives = session.collectives();
    std::optional<executor::MemoryStats> at_end;
    const auto begin = std::chrono::steady_clock::now();
    if (plan != nullptr) plan->begin_step();
    const Result<double> loss = run_step(session, options.offloaded);
    if (!loss) return loss.error();
    measured.loss = *loss;
    if (plan != nullptr) {
      Result<executor::StepReport> report = plan->end_step();
      if (!report) return report.error();
      if (!report->on_plan && run.on_plan) {
        run.on_plan = false;
        run.first_difference = report->first_difference;
      }
      run.off_plan_packs += report->off_plan_packs;
      run.host_bytes = plan->host_high_water();
      run.look_ahead = plan->look_ahead();
      run.memory = plan->memory_report();
      run.loaded_bytes = report->loaded_bytes;
      run.stored_bytes = report->stored_bytes;
      measured.unplanned_stored_bytes = report->unplanned_stored_bytes;
      measured.host_update_ns = report->host_update_ns;
      at_end = report->memory;
    }
    if (collectives) measured.collectives = *session.collectives() - *collectives;
    device.synchronize();
    measured.step_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::steady_clock::now() - begin)
                           .count();
    const executor::MemoryStats memory = device.memory();
    const executor::MemoryStats& peaks = at_end ? *at_end : memory;
    measured.peak_requested = peaks.peak_requested;
    measured.peak_active = peaks.peak_active;
    measured.peak_reserved = peaks.peak_reserved;
    if (measures_stalls) measured.stall_ns = device.stall_ns();
    run.steps.push_back(measured);
    course.add(measured.step_ns);
    if (options.progress) options.progress(k + 1, options.course.steps);
    if (k == 0) after_first = memory;
    if (memory.driver_allocations >= 0) {
      run.driver_allocations_after_first_step =
          memory.driver_allocations - after_first.driver_allocations;
    }
    if (memory.pinned_blocks >= 0) {
      run.pinned_after_first_step = memory.pinned_blocks - after_first.pinned_blocks;
    }
    if (k < options.dumped_steps) {
      const Status dumped = dump_step(session, plan, options.offloaded, k, measured.loss, writer);
      if (!dumped) return dumped.error();
    }
    if (k == 0) after_first = device.memory();  // with what dumping takes
  }
  device.time_stalls(false);
  run.used_bytes = device.used_bytes();
  summarize(run, course);
  run.facts = facts_of(session);
  run.ranks = session.ranks();
  if (!options.updated_on_host.empty()) run.facts[kUpdatedOnHost] = options.updated_on_host;
  run.warnings = device.warnings();
  run.other_allocator = device.other_allocator();
  return run;
}

}  // namespace

Result<MeasuredRun> measure(Session& session, executor::PlannedStep* plan,
                            const MeasureOptions& options) {
  STOWAGE_ASSERT(options.course.steps > 0);
  STOWAGE_ASSERT(plan == nullptr || options.offloaded == nullptr);
  Result<MeasuredRun> run =
      guarded([&]() -> Result<MeasuredRun> { return run_steps(session, plan, options); });
  if (!run && plan != nullptr) plan->abort_step();
  return run;
}

}  // namespace stowage::cli
