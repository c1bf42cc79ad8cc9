#include "python/bindings/torch/training.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <stowage/plan.h>
#include <stowage/trace.h>
#include <stowage/train.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/torch/device_memory.h"
#include "python/bindings/torch/python_call.h"
#include "python/bindings/torch/resumable_recording.h"
#include "python/bindings/torch/tensor_caster.h"

namespace stowage::python {

namespace {

namespace nb = nanobind;
using executor::NamedTensor;
using executor::PlannedTraining;
using Named = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<NamedTensor> tensors_of(const Named& named) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(named.size());
  for (const auto& [name, tensor] : named) tensors.push_back({name, tensor});
  return tensors;
}

Named named_of(const std::vector<NamedTensor>& tensors) {
  Named named;
  named.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) named.emplace_back(tensor.name, tensor.tensor);
  return named;
}

std::unique_ptr<ResumableRecording> make_recording(executor::Device& device, const nb::dict& run,
                                                   std::int64_t warmup, std::int64_t steps,
                                                   std::int64_t structure) {
  const auto text = [&run](const char* key) { return nb::cast<std::string>(run[key]); };
  Run what;
  what.model = text("model");
  what.dtype = text("dtype");
  what.autocast = text("autocast");
  what.optimizer = text("optimizer");
  what.batch = nb::cast<std::int64_t>(run["batch"]);
  what.seq = nb::cast<std::int64_t>(run["seq"]);
  what.argv = nb::cast<std::vector<std::string>>(run["argv"]);
  profiler::RecordSettings settings;
  settings.passes.warmup = warmup;
  settings.passes.steps = steps;
  settings.passes.structure = structure;
  settings.passes.wait_for_quiet = false;  // somebody's training
  return std::make_unique<ResumableRecording>(device, std::move(what), std::move(settings));
}

void begin_recorded(ResumableRecording& recording, const Named& parameters, const Named& buffers,
                    const Named& optimizer_state) {
  recording.begin({.parameters = tensors_of(parameters),
                   .buffers = tensors_of(buffers),
                   .inputs = {},
                   .optimizer_state = tensors_of(optimizer_state)});
}

nb::bytes json_of(ResumableRecording& recording) {
  const std::string text = trace_to_json(take(recording.take()));
  return nb::bytes(text.data(), text.size());
}

std::string_view view_of(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}

// A plan that runs. Its steps are those of the thread that begins them.
class PlannedLoop {
 public:
  PlannedLoop(executor::Device& device, const nb::bytes& trace_json, const nb::bytes& plan_json,
              const Named& parameters, const Named& older, nb::object optimizer_state,
              bool has_trained) {
    const auto trace =
        std::make_shared<const Trace>(take(trace_from_json(view_of(trace_json), "trace")));
    const simulator::Plan plan = take(simulator::plan_from_json(view_of(plan_json), "plan"));
    executor::PlannedTrainingOptions options;
    options.step.off_plan = executor::OffPlan::offload_all;
    for (const auto& [name, tensor] : older) options.step.older.push_back(tensor);
    if (has_trained) options.step.ran_before = simulator::RanBefore::steps;
    // Asked by create() alone, on this thread.
    options.step.optimizer_state =
        [state = PythonCall(std::move(optimizer_state))](const std::vector<NamedTensor>& of) {
          return tensors_of(nb::cast<Named>(state.function()(named_of(of))));
        };
    options.log = [lines = lines_](const std::string& line) { lines->push_back(line); };
    const auto& kinds = trace->events.kind;
    has_updates_ =
        std::find(kinds.begin(), kinds.end(), EventKind::parameter_update_begin) != kinds.end();
    training_ = take(
        PlannedTraining::create(device, trace, plan, tensors_of(parameters), std::move(options)));
  }

  void begin() {
    without_gil([this] { training_->begin(); });
  }
  // Waits for the device; other Python threads run meanwhile.
  nb::dict end() {
    const executor::StepReport report = take(without_gil([this] { return training_->end(); }));
    nb::dict figures;
    figures["on_plan"] = report.on_plan;
    figures["first_difference"] = report.first_difference;
    figures["off_plan_packs"] = report.off_plan_packs;
    figures["peak_requested_bytes"] = report.memory.peak_requested;
    figures["peak_active_bytes"] = report.memory.peak_active;
    figures["peak_reserved_bytes"] = report.memory.peak_reserved;
    figures["offloaded_bytes"] = report.offloaded_bytes;
    figures["reloaded_bytes"] = report.reloaded_bytes;
    figures["loaded_bytes"] = report.loaded_bytes;
    figures["stored_bytes"] = report.stored_bytes;
    figures["unplanned_stored_bytes"] = report.unplanned_stored_bytes;
    return figures;
  }
  void abort() {
    without_gil([this] { training_->abort(); });
  }
  // None: the plan has no memory of its own.
  nb::object memory() const {
    const auto report = training_->planned_step().memory_report();
    if (!report) return nb::none();
    nb::dict figures;
    figures["bytes"] = report->bytes;
    figures["older_bytes"] = report->older;
    figures["setup_ns"] = report->setup;
    figures["served"] = report->served;
    figures["conflicts"] = report->conflicts;
    figures["unforeseen"] = report->unforeseen;
    figures["surprises"] = report->surprises;
    figures["lent"] = report->lent;
    return figures;
  }
  [[nodiscard]] bool has_updates() const { return has_updates_; }
  void materialise() {
    without_gil([this] { training_->planned_step().materialise_all(); });
  }
  std::vector<std::string> lines() { return std::exchange(*lines_, {}); }
  nb::dict predicted() const {
    const simulator::ReplayResult& result = training_->predicted();
    nb::dict figures;
    figures["peak_requested_bytes"] = result.peak_requested;
    figures["peak_active_bytes"] = result.peak_active;
    figures["peak_reserved_bytes"] = result.peak_reserved;
    figures["host_bytes"] = result.host_bytes;
    figures["step_ns"] = result.step_ns;
    figures["stall_ns"] = result.stall_ns;
    return figures;
  }

 private:
  std::shared_ptr<std::vector<std::string>> lines_ = std::make_shared<std::vector<std::string>>();
  std::unique_ptr<PlannedTraining> training_;
  bool has_updates_ = false;
};

void define_recording(nb::module_& module) {
  nb::class_<ResumableRecording>(module, "Recording",
                                 "A recording made of steps that a loop makes anyway.")
      .def(nb::new_(&make_recording), nb::arg("device"), nb::arg("run"), nb::arg("warmup"),
           nb::arg("steps"), nb::arg("structure"))
      .def("begin", &begin_recorded, nb::arg("parameters"), nb::arg("buffers"),
           nb::arg("optimizer_state"), "A step begins.")
      .def("end", &ResumableRecording::end, nb::call_guard<nb::gil_scoped_release>(),
           "The step has ended; whether it was the last one.")
      .def("abort", &ResumableRecording::abort, "The step raised: the recording is given up.")
      .def("warnings", &ResumableRecording::warnings, "Lines since the last call.")
      .def("trace_json", &json_of, "Behind the last step: the trace.")
      .def_prop_ro("ended", &ResumableRecording::ended)
      .def_prop_ro("part", &ResumableRecording::part, "What is recorded now, in words.")
      .def_prop_ro("steps", &ResumableRecording::steps, "Made so far.");
}

}  // namespace

void define_training(nb::module_& module) {
  define_recording(module);
  nb::class_<PlannedLoop>(module, "PlannedLoop",
                          "A plan that runs; parameters that stream are away.")
      .def(nb::init<executor::Device&, nb::bytes, nb::bytes, Named, Named, nb::object, bool>(),
           nb::arg("device"), nb::arg("trace_json"), nb::arg("plan_json"), nb::arg("parameters"),
           nb::arg("older"), nb::arg("optimizer_state"), nb::arg("has_trained"))
      .def("begin", &PlannedLoop::begin, "A step begins on this thread.")
      .def("end", &PlannedLoop::end, "The step has ended: what it did.")
      .def("abort", &PlannedLoop::abort, "The step raised; what it held is dropped.")
      .def("materialise", &PlannedLoop::materialise,
           "Parameters, optimizer state and gradients are there until the next step.")
      .def("memory", &PlannedLoop::memory, "What its planned memory served; None without one.")
      .def("lines", &PlannedLoop::lines, "What a user should know, since the last call.")
      .def_prop_ro("has_updates", &PlannedLoop::has_updates,
                   "The recorded step told of its updates one by one.")
      .def_prop_ro("predicted", &PlannedLoop::predicted);
}

}  // namespace stowage::python
