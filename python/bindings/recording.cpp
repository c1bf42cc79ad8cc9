#include "python/bindings/recording.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/report.h>
#include <stowage/simulate.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/tables.h"
#include "python/bindings/texts.h"

namespace stowage::python {

namespace nb = nanobind;

const simulator::StepIndex& Recording::index() const {
  if (trace_.events.size() == 0) {
    throw Raised({ErrorCode::bad_input, "the trace has no events", "", "/events", ""});
  }
  std::call_once(once_, [this] { index_.emplace(trace_); });
  return *index_;
}

namespace {

using Shared = std::shared_ptr<Recording>;

Shared load_recording(const std::string& path) {
  LoadedTrace loaded = take(load_trace(path));
  return std::make_shared<Recording>(std::move(loaded.trace), std::move(loaded.sha256));
}

Shared recording_from_json(const nb::bytes& text, const std::string& name) {
  const std::string_view view(text.c_str(), text.size());
  return without_gil([&] {
    return std::make_shared<Recording>(take(trace_from_json(view, name)), sha256_of(view));
  });
}

nb::bytes json_of_recording(const Recording& recording) {
  return bytes_of(without_gil([&] { return trace_to_json(recording.trace()); }));
}

// The same step on another machine: "link.h2d_gbps=25", ..
Shared with_settings(const Recording& recording, const std::vector<std::string>& settings) {
  Trace trace = recording.trace();
  for (const std::string& setting : settings) {
    check(simulator::apply_setting(trace.calibration, setting));
  }
  set_calibration(trace, Calibration(trace.calibration));
  return std::make_shared<Recording>(std::move(trace), recording.sha256());
}

void define_facts(nb::class_<Recording>& of) {
  const auto fact = [&of](const char* name, auto get) {
    of.def_prop_ro(name, [get](const Recording& self) { return get(self.trace()); });
  };
  fact("model", [](const Trace& trace) { return text_of(trace.run.model); });
  fact("dtype", [](const Trace& trace) { return text_of(trace.run.dtype); });
  fact("autocast", [](const Trace& trace) { return text_of(trace.run.autocast); });
  fact("optimizer", [](const Trace& trace) { return text_of(trace.run.optimizer); });
  fact("created", [](const Trace& trace) { return text_of(trace.run.created); });
  fact("device", [](const Trace& trace) { return text_of(trace.env.device); });
  fact("device_name", [](const Trace& trace) { return text_of(trace.env.device_name); });
  fact("torch", [](const Trace& trace) { return text_of(trace.env.torch); });
  fact("fingerprint", [](const Trace& trace) { return text_of(trace.fingerprint); });
  fact("batch", [](const Trace& trace) { return trace.run.batch; });
  fact("seq", [](const Trace& trace) { return trace.run.seq; });
  fact("ops", [](const Trace& trace) {
    return std::count(trace.ops.parent.begin(), trace.ops.parent.end(), OpId());
  });
  fact("saved", [](const Trace& trace) { return trace.saved.size(); });
  fact("storages", [](const Trace& trace) { return trace.storages.size(); });
  of.def_prop_ro("sha256", &Recording::sha256);
}

}  // namespace

void define_trace(nb::module_& module) {
  nb::class_<Recording> of(module, "Recording");
  of.def_static("load", &load_recording, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
  of.def_static("from_json", &recording_from_json, nb::arg("text"), nb::arg("name"));
  of.def(
      "save",
      [](const Recording& self, const std::string& path) { check(save_trace(path, self.trace())); },
      nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
  of.def("to_json", &json_of_recording);
  of.def("with_settings", &with_settings, nb::arg("settings"),
         nb::call_guard<nb::gil_scoped_release>());
  of.def_prop_ro("step_ns", [](const Recording& self) {
    return self.trace().events.size() == 0 ? 0 : report::measured_step(self.trace());
  });
  of.def(
      "peaks", [](const Recording& self) { return peaks_row(self.trace()); },
      nb::sig("def peaks(self) -> dict[str, int | None]"));
  of.def(
      "layers", [](const Recording& self) { return layer_rows(self.trace()); },
      nb::sig("def layers(self) -> list[dict[str, object]]"));
  of.def(
      "saved_tensors", [](const Recording& self) { return saved_rows(self.trace()); },
      nb::sig("def saved_tensors(self) -> list[dict[str, object]]"));
  define_facts(of);
}

}  // namespace stowage::python
