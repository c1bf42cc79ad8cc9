#include "cli/torch/recorded_step.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/torch/child_process.h"
#include "cli/torch/session.h"
#include "executor/device/device.h"
#include "profiler/torch/recording.h"
#include "traces/trace_json.h"

namespace stowage::cli {

namespace {

// Times that the clean steps are run again at most, each in a process of its own.
constexpr int kMostCleanAgain = 2;

// The request of a pass that runs in a process of its own.
RecordingRequest with_options(RecordingRequest request, const profiler::PassOptions& options) {
  request.everything_offloaded = options.everything_offloaded;
  request.clean_step_ns = options.clean_step_ns;
  return request;
}

}  // namespace

Result<Trace> record_here(const RecordingRequest& request, const StepUnderPlan* under,
                          const Args& argv, const Console& console) {
  const auto note = [&console](std::string_view part) {
    if (console.progress()) console.note(std::string(part) + " ..");
  };
  std::unique_ptr<Session> session;  // made when the GPU is this process's alone
  profiler::RecordingPasses passes;
  passes.clean = [&](const profiler::PassOptions& options) {
    note("clean steps and calibration of the copy lanes");
    return clean_in_child(with_options(request, options));
  };
  passes.timing = [&](const profiler::PassOptions& options) {
    return timing_in_child(with_options(request, options));
  };
  passes.open = [&]() -> Result<profiler::RecordedStep> {
    Result<std::unique_ptr<Session>> made = Session::create(request.run);
    if (!made) return made.error();
    session = std::move(made).value();
    if (request.memory_limit) session->set_memory_limit(*request.memory_limit);
    Run run = session->run();
    run.argv = argv;
    return profiler::RecordedStep{&session->device(), session->functions(), std::move(run),
                                  request.run.micro_batches};
  };
  passes.clean_again = request.quick ? 0 : kMostCleanAgain;
  passes.warn = [&console](const std::string& line) { console.warn(line); };
  profiler::PassOptions options;
  options.warmup = request.warmup;
  options.memory_limit = request.memory_limit.value_or(0);
  options.restores_state = false;
  if (request.quick) make_quick(options);
  options.progress = note;
  if (under != nullptr) options.again = under->again();
  return guarded([&]() -> Result<Trace> {
    Result<Trace> trace = profiler::record_passes(passes, options);
    if (session) {
      // Whatever this process starts next may want all of the device.
      executor::Device& device = session->device();
      session.reset();
      device.release_cache();
    }
    return trace;
  });
}

Trace with_fingerprint(Trace recorded, const std::string& fingerprint) {
  if (fingerprint.empty() || recorded.fingerprint == fingerprint) return recorded;
  for (const std::shared_ptr<const Trace>& part : recorded.divided) {
    if (part->fingerprint == fingerprint) return *part;
  }
  return recorded;
}

Result<Trace> record_in_child(const RunRequest& request) {
  Result<ScratchFile> scratch = ScratchFile::create();
  if (!scratch) return scratch.error();
  std::vector<std::string> arguments = {"profile"};
  for (std::string& word : request.arguments()) arguments.push_back(std::move(word));
  arguments.insert(arguments.end(), {"-o", "-", "--quiet"});
  if (Status status = run_child(arguments, scratch->descriptor()); !status) return status.error();
  Result<std::string> text = scratch->content();
  if (!text) return text.error();
  return trace_from_json(*text, "the recording made again");
}

}  // namespace stowage::cli
