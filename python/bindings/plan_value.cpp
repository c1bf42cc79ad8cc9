#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/plan.h>

#include <string>
#include <string_view>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/recording.h"
#include "python/bindings/texts.h"

namespace stowage::python {

namespace nb = nanobind;

namespace {

PlanValue plan_value_of(const nb::bytes& text, const std::string& name) {
  return {take(simulator::plan_from_json(std::string_view(text.c_str(), text.size()), name))};
}

// Where the plan's trace lies, for a plan in a file.
PlanValue with_trace_file(const PlanValue& self, const std::string& file) {
  PlanValue out = self;
  out.plan.target.trace_file = file;
  return out;
}

// The name of a trace's saved tensor, and what is decided about it: short rules that say the same.
planner::PolicyRules rules_of(const Recording& recording, const std::vector<std::string>& decided) {
  using simulator::Decision;
  const Trace& trace = recording.trace();
  if (decided.size() != trace.saved.size()) {
    throw Raised({ErrorCode::usage, "a decision for each saved tensor is needed", "", "", ""});
  }
  simulator::Decisions decisions;
  decisions.saved.resize(decided.size());
  for (std::size_t row = 0; row < decided.size(); ++row) {
    decisions.saved[row].decision =
        take(value_of_name(trace.string(trace.saved.site[row]), "decision", decided[row],
                           {Decision::keep, Decision::offload, Decision::recompute}));
  }
  planner::PolicyRules rules;
  rules.saved = simulator::to_rules(trace, decisions);
  return rules;
}

}  // namespace

void define_plan(nb::module_& module) {
  nb::class_<PlanValue> of(module, "PlanValue");
  of.def_static("from_json", &plan_value_of, nb::arg("text"), nb::arg("name"));
  of.def("to_json",
         [](const PlanValue& self) { return bytes_of(simulator::plan_to_json(self.plan)); });
  of.def("with_trace_file", &with_trace_file, nb::arg("file"));
  of.def(
      "check_target",
      [](const PlanValue& self, const Recording& recording, const std::string& name) {
        check(simulator::check_target(self.plan, name, recording.trace()));
      },
      nb::arg("recording"), nb::arg("name"));
  nb::class_<planner::PolicyRules>(module, "Rules");
  module.def("rules_of", &rules_of, nb::arg("recording"), nb::arg("decided"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace stowage::python
