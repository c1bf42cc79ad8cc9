#include "cli/torch/measured_run.h"

#include <algorithm>
#include <chrono>

namespace stowage::cli {

namespace {

constexpr std::size_t kSteadyFrom = 2;

Nanoseconds median(std::vector<Nanoseconds> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// `plan` knows where parameters are; null = in their own memory.
Status dump_step(Session& session, executor::PlannedStep* plan, std::int64_t step, double loss,
                 int descriptor) {
  executor::TensorDumpWriter writer(session.device(), descriptor);
  if (Status status = writer.add_loss(step, loss); !status) return status;
  for (const auto& gradient : session.step().gradients()) {
    if (Status status = writer.add(step, "gradient", gradient); !status) return status;
  }
  const auto parameters = plan != nullptr ? plan->values() : session.step().parameters();
  for (const auto& parameter : parameters) {
    if (Status status = writer.add(step, "parameter", parameter); !status) return status;
  }
  return Unit{};
}

void summarize(MeasuredRun& run) {
  const std::size_t first = std::min(kSteadyFrom, run.steps.size() - 1);
  std::vector<Nanoseconds> times;
  std::vector<Nanoseconds> stalls;
  for (std::size_t i = first; i < run.steps.size(); ++i) {
    const MeasuredStep& step = run.steps[i];
    if (i > first && step.peak_requested != run.peak_requested) run.peaks_constant = false;
    if (i > first &&
        (step.peak_active != run.peak_active || step.peak_reserved != run.peak_reserved)) {
      run.active_constant = false;
    }
    run.peak_requested = std::max(run.peak_requested, step.peak_requested);
    run.peak_active = std::max(run.peak_active, step.peak_active);
    run.peak_reserved = std::max(run.peak_reserved, step.peak_reserved);
    times.push_back(step.step_ns);
    stalls.push_back(step.stall_ns);
  }
  run.step_ns = median(times);
  run.stall_ns = median(stalls);
}

Result<MeasuredRun> run_steps(Session& session, executor::PlannedStep* plan,
                              const MeasureOptions& options) {
  executor::Device& device = session.device();
  MeasuredRun run;
  if (plan != nullptr) run.host_bytes = plan->host_bytes();
  executor::MemoryStats after_first;
  for (std::int64_t k = 0; k < options.steps; ++k) {
    session.step().prepare(k);
    device.synchronize();
    device.reset_peak();
    MeasuredStep measured;
    const auto begin = std::chrono::steady_clock::now();
    if (plan != nullptr) plan->begin_step();
    measured.loss = session.step().step();
    if (plan != nullptr) {
      Result<executor::StepReport> report = plan->end_step();
      if (!report) return report.error();
      if (!report->on_plan && run.on_plan) {
        run.on_plan = false;
        run.first_difference = report->first_difference;
      }
      run.off_plan_packs += report->off_plan_packs;
      run.loaded_bytes = report->loaded_bytes;
      run.stored_bytes = report->stored_bytes + report->unplanned_stored_bytes;
    }
    device.synchronize();
    measured.step_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::steady_clock::now() - begin)
                           .count();
    const executor::MemoryStats memory = device.memory();
    measured.peak_requested = memory.peak_requested;
    measured.peak_active = memory.peak_active;
    measured.peak_reserved = memory.peak_reserved;
    measured.stall_ns = device.stall_ns();
    run.steps.push_back(measured);
    if (k == 0) after_first = memory;
    if (memory.driver_allocations >= 0) {
      run.driver_allocations_after_first_step =
          memory.driver_allocations - after_first.driver_allocations;
    }
    if (memory.pinned_blocks >= 0) {
      run.pinned_after_first_step = memory.pinned_blocks - after_first.pinned_blocks;
    }
    if (k < options.dumped_steps) {
      if (Status status = dump_step(session, plan, k, measured.loss, options.dump_descriptor);
          !status) {
        return status.error();
      }
    }
  }
  summarize(run);
  run.warnings = device.warnings();
  return run;
}

}  // namespace

Result<MeasuredRun> measure(Session& session, executor::PlannedStep* plan,
                            const MeasureOptions& options) {
  STOWAGE_ASSERT(options.steps > 0);
  Result<MeasuredRun> run =
      guarded([&]() -> Result<MeasuredRun> { return run_steps(session, plan, options); });
  if (!run && plan != nullptr) plan->abort_step();
  return run;
}

}  // namespace stowage::cli
