// stowage_hooks_bench [MODEL] [STEPS] [DEVICE]: a step under a plan that moves nothing against the
// plain step, and what one hook costs. The default model is many tiny ops on a CPU.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/torch/session.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/step_hooks.h"

namespace stowage {
namespace {

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

void run(const std::string& model, std::int64_t steps, const std::string& device_name) {
  cli::RunFlags flags;
  flags.device = device_name;
  flags.batch = 1;
  flags.optimizer = "none";
  flags.threads = 1;
  cli::CommandFiles files;
  const auto session =
      or_throw(cli::Session::create(or_throw(cli::make_request(model, flags, files))));
  executor::Device& device = session->device();
  const profiler::StepFunctions step = session->functions();
  const profiler::PassOptions options{.warmup = 3, .steps = 3, .structure = 1};
  profiler::RawRecording raw;
  raw.clean = or_throw(profiler::run_clean_pass(device, step, options));
  auto observed = or_throw(profiler::run_observed_passes(device, step, options));
  raw.structure = std::move(observed.structure);
  raw.offload_all = std::move(observed.offload_all);
  raw.run = session->run();
  raw.env = session->environment();
  const auto trace = std::make_shared<const Trace>(or_throw(profiler::assemble(raw)));
  const profiler::StepHooks hooks = or_throw(
      profiler::measure_step_hooks(device, step, trace, 10, profiler::StepBudget::exactly(steps)));
  std::printf("%s on %s: %lld hooks, %zu layers\n", model.c_str(), device_name.c_str(),
              static_cast<long long>(hooks.hooks), trace->layers.size());
  std::printf("plain %.1f us, planned %.1f us, ratio %.4f, %lld ns a hook\n",
              static_cast<double>(hooks.plain_ns) / 1e3,
              static_cast<double>(hooks.planned_ns) / 1e3,
              static_cast<double>(hooks.planned_ns) / static_cast<double>(hooks.plain_ns),
              static_cast<long long>(hooks.hook_ns()));
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  try {
    stowage::run(argc > 1 ? argv[1] : "gpt2:layers=12,width=16,heads=2,seq=4,vocab=16",
                 argc > 2 ? std::atoll(argv[2]) : 101, argc > 3 ? argv[3] : "cpu");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
