#include "python/bindings/torch/resumable_recording.h"

#include <memory>
#include <utility>

namespace stowage::python {

ResumableRecording::ResumableRecording(executor::Device& device, Run run,
                                       profiler::RecordSettings settings)
    : device_(device),
      fiber_([this, run = std::move(run), settings = std::move(settings)](Fiber& self) {
        this->run(self, run, settings);
      }) {}

namespace {

// One a process, made behind CUDA's start: the loop's tensors are there.
const Result<std::unique_ptr<profiler::TimingRecorder>>& timing_recorder() {
  static const auto recorder = profiler::TimingRecorder::create(/*cuda_has_started=*/true);
  return recorder;
}

}  // namespace

void ResumableRecording::run(Fiber& self, Run run, profiler::RecordSettings settings) {
  if (device_.torch_device().is_cuda()) {
    if (const auto& recorder = timing_recorder()) {
      settings.timing = recorder->get();
    } else {
      warnings_.push_back(recorder.error().text());
    }
  }
  profiler::StepFunctions functions;
  // Nothing is measured between prepare() and step() that a loop's own work there would spoil.
  functions.prepare = [&](std::int64_t) {
    at_ = At::before_step;
    while (!has_begun_) self.yield();
  };
  functions.step = [&] {
    at_ = At::before_step;
    while (!has_begun_) self.yield();
    at_ = At::in_step;
    self.yield();
    has_begun_ = false;
  };
  functions.registered = [&] { return tensors_; };
  settings.passes.progress = [&](std::string_view part) { part_ = part; };
  settings.warn = [&](const std::string& line) { warnings_.push_back(line); };
  result_ = profiler::record(device_, functions, std::move(run), settings);
}

void ResumableRecording::begin(profiler::RegisteredTensors tensors) {
  tensors_ = std::move(tensors);
  has_begun_ = true;
  while (!fiber_.ended() && at_ != At::in_step) fiber_.resume();
}

bool ResumableRecording::end() {
  if (fiber_.ended()) return true;
  ++steps_;
  fiber_.resume();
  while (!fiber_.ended() && at_ == At::in_step) fiber_.resume();
  return fiber_.ended();
}

void ResumableRecording::abort() {
  fiber_.cancel();
  tensors_ = {};
}

Result<Trace> ResumableRecording::take() {
  tensors_ = {};
  if (result_) return std::move(*result_);
  return Error{ErrorCode::condition, "the recording was given up in a step that raised", "", "",
               ""};
}

std::vector<std::string> ResumableRecording::warnings() {
  return std::exchange(warnings_, {});
}

}  // namespace stowage::python
