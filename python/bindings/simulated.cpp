#include "python/bindings/simulated.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/report.h>

#include <optional>
#include <utility>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/texts.h"

namespace stowage::python {

namespace nb = nanobind;

namespace {

using Given = std::shared_ptr<Recording>;

Simulated replay_plan(const Given& recording, simulator::Plan plan, const std::string& name,
                      const std::string& policy) {
  Result<report::Simulation> made = report::simulate(recording->index(), plan, name);
  if (!made && !policy.empty()) throw Raised(planner::of_policy(policy, made.error()));
  return {recording, std::move(plan),
          std::make_shared<const report::Simulation>(take(std::move(made))), policy};
}

void place(simulator::Plan& plan, const std::optional<std::string>& placement) {
  using simulator::PlacementMode;
  if (!placement) return;
  planner::move_to(take(value_of_name("placement", "memory", *placement,
                                      {PlacementMode::caching, PlacementMode::planned})),
                   plan);
}

Simulated simulate_plan(const Given& recording, const PlanValue& given, const std::string& name,
                        const std::optional<std::string>& placement) {
  simulator::Plan plan = given.plan;
  check(simulator::check_target(plan, name, recording->trace()));
  check(planner::resolve_budget(recording->index(), recording->sha256(), plan));
  place(plan, placement);
  return replay_plan(recording, std::move(plan), name, "");
}

Simulated simulate_policy(const Given& recording, const std::string& policy,
                          const std::optional<std::string>& placement) {
  planner::PolicyPlan made = take(planner::policy_plan(recording->index(), policy));
  place(made.plan, placement);
  return replay_plan(recording, std::move(made.plan), "", policy);
}

nb::dict curve_of_simulation(const Simulated& self) {
  const simulator::ReplayDetail& detail = self.simulation->detail;
  nb::dict out;
  out["time_ns"] = detail.time;
  out["requested_bytes"] = detail.requested;
  out["active_bytes"] = detail.active;
  out["reserved_bytes"] = detail.reserved;
  return out;
}

nb::str text_of_simulation(const Simulated& self, int width, bool unicode) {
  const std::string text = without_gil([&] {
    return report::simulation_text(self.simulation->index->trace(), *self.simulation, self.plan,
                                   self.title(), {report::Paint(), width, unicode});
  });
  return shown(text);
}

std::string exported(const Recording& recording, const Simulated* planned,
                     const std::string& format_name, const std::string& table_name) {
  using report::CsvTable;
  using report::ExportFormat;
  const ExportFormat format = take(value_of_name(
      "format", "format", format_name,
      {ExportFormat::chrome, ExportFormat::svg, ExportFormat::csv, ExportFormat::memory_viz}));
  const CsvTable table = take(
      value_of_name("table", "table", table_name,
                    {CsvTable::memory, CsvTable::storages, CsvTable::stalls, CsvTable::timeline}));
  static_cast<void>(recording.index());  // there are events
  std::optional<report::StepView> recorded;
  std::optional<report::StepView> replayed;
  if (planned == nullptr || format == ExportFormat::chrome) {
    recorded = report::recorded_step(recording.trace());
  }
  std::vector<const report::StepView*> steps;
  if (recorded) steps.push_back(&*recorded);
  if (planned != nullptr) {
    replayed = report::planned_step(planned->simulation->index->trace(), *planned->simulation,
                                    planned->plan, planned->title());
    steps.push_back(&*replayed);
  }
  return report::export_steps(steps, format, table);
}

}  // namespace

void define_simulation(nb::module_& module) {
  nb::class_<Simulated> of(module, "Simulated");
  of.def("json", [](const Simulated& self) {
    return bytes_of(report::simulate_json(*self.simulation, self.plan, self.policy));
  });
  of.def("timeline_json", [](const Simulated& self) {
    return bytes_of(
        report::timeline_json(self.simulation->index->trace(), *self.simulation, self.plan));
  });
  of.def_prop_ro("plan", [](const Simulated& self) { return PlanValue{self.plan}; });
  of.def("curve", &curve_of_simulation, nb::sig("def curve(self) -> dict[str, list[int]]"));
  of.def("text", &text_of_simulation, nb::arg("width"), nb::arg("unicode"));
  of.def(
      "export",
      [](const Simulated& self, const std::string& format, const std::string& table) {
        const std::string text =
            without_gil([&] { return exported(*self.recording, &self, format, table); });
        return bytes_of(text);
      },
      nb::arg("format"), nb::arg("table"));
  module.def(
      "export_recorded",
      [](const Recording& recording, const std::string& format, const std::string& table) {
        const std::string text =
            without_gil([&] { return exported(recording, nullptr, format, table); });
        return bytes_of(text);
      },
      nb::arg("recording"), nb::arg("format"), nb::arg("table"));
  module.def("simulate_plan", &simulate_plan, nb::arg("recording"), nb::arg("plan"),
             nb::arg("name"), nb::arg("placement").none(),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("simulate_policy", &simulate_policy, nb::arg("recording"), nb::arg("policy"),
             nb::arg("placement").none(), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace stowage::python
