#include "tests/profiler_torch/recorded_model.h"

#include <stdexcept>
#include <utility>

#include "profiler/assembly/assemble.h"
#include "profiler/torch/passes.h"
#include "simulator/step/unroll.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/or_throw.h"
#include "traces/validate.h"

namespace stowage::testing {

namespace {

const profiler::PassOptions kPasses{
    .warmup = 2, .steps = 2, .structure = 1, .wait_for_quiet = false};

std::unique_ptr<cli::Session> new_session(const std::string& spec, std::int64_t batch,
                                          const std::string& optimizer, const Precision& precision,
                                          const cli::Parts& parts = {}) {
  cli::RunFlags flags;
  flags.dtype = precision.dtype;
  if (!precision.autocast.empty()) flags.autocast = precision.autocast;
  if (!precision.grad_scaler.empty()) flags.grad_scaler = precision.grad_scaler;
  flags.device = test_device_name();
  flags.batch = batch;
  flags.optimizer = optimizer;
  flags.threads = 1;
  cli::CommandFiles files;
  cli::RunRequest request = or_throw(cli::make_request(spec, flags, files));
  request.micro_batches = parts;
  return or_throw(cli::Session::create(request));
}

}  // namespace

std::unique_ptr<cli::Session> make_fresh_session(const std::string& spec, std::int64_t batch,
                                                 const std::string& optimizer) {
  return new_session(spec, batch, optimizer, "fp32");
}

std::unique_ptr<cli::Session> make_session(const std::string& spec, std::int64_t batch,
                                           const std::string& optimizer, const Precision& precision,
                                           const cli::Parts& parts) {
  std::unique_ptr<cli::Session> session = new_session(spec, batch, optimizer, precision, parts);
  const std::int64_t steps = 2 * kPasses.warmup + kPasses.steps + kPasses.structure + 1;
  for (std::int64_t k = 0; k < steps; ++k) session->step().run(k);
  return session;
}

RecordedModel record_model(const std::string& spec, std::int64_t batch,
                           const std::string& optimizer, const Precision& precision,
                           const cli::Parts& parts) {
  RecordedModel recorded;
  recorded.session = new_session(spec, batch, optimizer, precision, parts);
  profiler::RawRecording raw;
  const profiler::StepFunctions step = recorded.session->functions();
  executor::Device& device = recorded.session->device();
  raw.clean = or_throw(profiler::run_clean_pass(device, step, kPasses));
  profiler::ObservedPasses observed =
      or_throw(profiler::run_observed_passes(device, step, kPasses));
  raw.structure = std::move(observed.structure);
  raw.offload_all = std::move(observed.offload_all);
  raw.run = recorded.session->run();
  raw.env = recorded.session->environment();
  // A link that is slow beside this compute, so that automatic points have work to do.
  for (LinkCurve* curve : {&raw.calibration.d2h, &raw.calibration.h2d}) {
    curve->bytes = {4096, 1 << 20};
    curve->bytes_per_second = {500'000'000, 2'000'000'000};
    curve->bytes_per_second_p10 = curve->bytes_per_second;
    curve->latency = 5000;
  }
  Trace trace = or_throw(profiler::assemble(raw));
  simulator::set_recorded_parts(parts, trace);
  or_throw(validate(trace, spec));
  recorded.trace = std::make_shared<const Trace>(std::move(trace));
  return recorded;
}

}  // namespace stowage::testing
