#include "profiler/torch/passes.h"

#include <chrono>
#include <string>
#include <utility>

#include "profiler/torch/observed_step.h"
#include "profiler/torch/quiet_steps.h"
#include "profiler/torch/step_budget.h"
#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {

namespace {

using Clock = std::chrono::steady_clock;

// As it would be without the pager: nothing leaves, and state is made in its first update.
std::vector<RawSetup> setup_of(const executor::Device& device, const StatePager* pager) {
  const executor::SetupHistory history = device.setup_history();
  std::vector<RawSetup> setup;
  std::size_t born = 0;
  const auto add_births = [&](std::size_t events) {
    if (pager == nullptr) return;
    for (; born < pager->births().size() && pager->births()[born].events <= events; ++born) {
      const RawStorage& piece = pager->pieces()[pager->births()[born].piece];
      setup.push_back({piece.serial, piece.bytes, /*is_free=*/false, /*in_first_step=*/true});
    }
  };
  for (std::size_t i = 0; i < history.events.size(); ++i) {
    add_births(i);
    const executor::AllocationEvent& event = history.events[i];
    if (event.tag != executor::kStepAllocation) continue;  // a step without hooks has none of these
    if (event.is_free && pager != nullptr && pager->is_piece(event.serial)) continue;
    setup.push_back(
        {event.serial, event.is_free ? 0 : event.bytes, event.is_free, i >= history.first_step});
  }
  if (!setup.empty()) add_births(history.events.size());
  return setup;
}

}  // namespace

Bytes device_memory(const executor::Device& device) {
  Environment environment;
  device.describe(environment);
  return environment.device_memory;
}

Bytes state_share(Bytes memory_limit) {
  return memory_limit / 4;
}

Result<std::unique_ptr<StatePager>> make_pager(executor::Device& device, const StepFunctions& step,
                                               const PassOptions& options) {
  if (!options.everything_offloaded) return std::unique_ptr<StatePager>();
  if (step.make_state) step.make_state();
  const Bytes limit = options.memory_limit > 0 ? options.memory_limit : device_memory(device);
  const RegisteredTensors known = step.registered();
  auto pager =
      StatePager::create(device, known.parameters, known.optimizer_state, state_share(limit),
                         options.trains ? StatePager::Zeros::are_trained : StatePager::Zeros::stay);
  if (pager && *pager != nullptr && options.restores_state) (*pager)->keep_until_restored();
  return pager;
}

Result<CleanPass> run_clean_pass(executor::Device& device, const StepFunctions& step,
                                 const PassOptions& options) {
  if (const std::string other = device.other_allocator(); !other.empty()) {
    return Error{
        ErrorCode::environment,
        "the CUDA allocator is " + other + ", whose memory a recording cannot predict", "", "",
        "record without it (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF); plans run with it"};
  }
  options.report("warm-up");
  if (Status status = warm_up(device, step, options, {}); !status) return status.error();
  options.report("clean steps");
  CleanPass clean;
  // The peaks of the first are compared with those of the others. The CPU device's own work is what
  // it times, and nobody's neighbour is told apart from it.
  QuietSteps steps(
      StepBudget::up_to(options.steps, 4, 8 * kSecond),
      {.time_ns = options.wait_for_quiet && device.torch_device().is_cuda() ? 10 * kSecond : 0});
  for (std::int64_t i = 0; steps.wants_more(); ++i) {
    if (step.prepare) step.prepare(options.warmup + i);
    device.synchronize();
    device.reset_peak();
    const Clock::time_point begin = Clock::now();
    step.step();
    device.synchronize();
    steps.add(time_since(begin));
    const executor::MemoryStats memory = device.memory();
    if (i > 0 && memory.peak_requested != clean.peak_requested) {
      return Error{
          ErrorCode::bad_input,
          "two steps peaked at " + std::to_string(clean.peak_requested) + " and " +
              std::to_string(memory.peak_requested) + " requested bytes",
          "", "", "a step must do the same each time; more warm-up steps may help, or --threads 1"};
    }
    clean.peak_requested = memory.peak_requested;
    clean.peak_active = memory.peak_active;
    clean.peak_reserved = memory.peak_reserved;
  }
  clean.step_ns = steps.step_ns();
  clean.spread = steps.spread();
  return clean;
}

Status restore(StatePager* pager, const PassOptions& options) {
  return pager != nullptr && options.restores_state ? pager->restore() : Status(Unit{});
}

Result<ObservedPasses> run_observed_passes(executor::Device& device, const StepFunctions& step,
                                           const PassOptions& options) {
  options.report("warm-up");
  const Result<std::unique_ptr<StatePager>> pager = make_pager(device, step, options);
  if (!pager) return pager.error();
  const RecordOptions recording{
      .host_pool = executor::HostPool(device), .again = options.again, .pager = pager->get()};
  if (Status status = warm_up(device, step, options, recording); !status) return status.error();
  ObservedPasses passes;
  passes.setup = setup_of(device, pager->get());
  passes.adopted = device.setup_history().adopted;
  const auto budget =
      options.everything_offloaded
          ? StepBudget::exactly(0)
          : StepBudget::up_to(std::max<std::int64_t>(1, options.structure), 2, 6 * kSecond);
  if (!options.everything_offloaded) options.report("observed steps");
  Nanoseconds spent = 0;
  std::int64_t index = options.warmup;
  for (std::int64_t i = 0; budget.wants_more(i, spent); ++i) {
    Result<RawPass> pass = observe(device, step, RecordMode::keep, index++, recording);
    if (!pass) return pass.error();
    spent += pass->step_ns;
    if (i > 0) {
      auto& times = passes.more_times.emplace_back();
      for (const RawEvent& event : passes.structure.events) times.push_back(event.time_ns);
    }
    passes.structure = std::move(pass).value();
  }
  options.report("a step with everything offloaded");
  Result<RawPass> pass = observe(device, step, RecordMode::offload_all, index, recording);
  if (!pass) return pass.error();
  passes.offload_all = std::move(pass).value();
  if (Status status = restore(pager->get(), options); !status) return status.error();
  return passes;
}

}  // namespace stowage::profiler
