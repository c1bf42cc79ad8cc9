#include "gui/model/export_step.h"

#include "report/export_format.h"
#include "report/export_memory_viz.h"
#include "report/export_svg.h"
#include "report/stalls.h"
#include "report/step_view.h"
#include "simulator/plan/plan_json.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

report::StepView planned(const Simulated& of) {
  const std::string& file = of.state->file;
  return report::planned_step(
      of.step_trace(), of,
      report::explain_stalls(*of.index, of.schedule, of.result, of.detail, of.plan().budget.device),
      of.plan(), file.empty() ? "planned" : "plan " + file);
}

std::string text_of(const report::StepView& step, ExportKind kind) {
  using report::CsvTable;
  switch (kind) {
    case ExportKind::svg:
      return report::export_svg(step);
    case ExportKind::csv_memory:
      return report::export_csv(step, CsvTable::memory);
    case ExportKind::csv_timeline:
      return report::export_csv(step, CsvTable::timeline);
    case ExportKind::csv_stalls:
      return report::export_csv(step, CsvTable::stalls);
    case ExportKind::csv_storages:
      return report::export_csv(step, CsvTable::storages);
    case ExportKind::memory_viz:
      return report::export_memory_viz(step);
    case ExportKind::chrome:
    case ExportKind::plan:
      break;
  }
  return {};
}

}  // namespace

Status export_step(const Simulated& simulated, bool recorded, ExportKind kind,
                   const std::string& file) {
  if (kind == ExportKind::plan) {
    return write_file(file, simulator::plan_to_json(plan_for_writing(simulated, file)));
  }
  if (kind == ExportKind::chrome) {
    const report::StepView first = report::recorded_step(simulated.trace->trace);
    const report::StepView second = planned(simulated);
    return write_file(file, report::export_steps({&first, &second}, report::ExportFormat::chrome,
                                                 report::CsvTable::memory));
  }
  const report::StepView step =
      recorded ? report::recorded_step(simulated.trace->trace) : planned(simulated);
  return write_file(file, text_of(step, kind));
}

}  // namespace stowage::gui
