#include "report/export_format.h"

#include "report/export_chrome_json.h"
#include "report/export_memory_viz.h"
#include "report/export_svg.h"
#include "traces/result.h"

namespace stowage::report {

const char* name_of(ExportFormat value) {
  switch (value) {
    case ExportFormat::chrome:
      return "chrome";
    case ExportFormat::svg:
      return "svg";
    case ExportFormat::csv:
      return "csv";
    case ExportFormat::memory_viz:
      return "memory-viz";
  }
  STOWAGE_ASSERT(false && "unknown format");
}

std::optional<ExportFormat> export_format_of_file(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  if (path.ends_with(".json")) return ExportFormat::chrome;
  if (path.ends_with(".svg")) return ExportFormat::svg;
  if (path.ends_with(".csv")) return ExportFormat::csv;
  if (path.ends_with(".pickle") || path.ends_with(".pkl")) return ExportFormat::memory_viz;
  return std::nullopt;
}

std::string export_steps(const std::vector<const StepView*>& steps, ExportFormat format,
                         CsvTable table) {
  STOWAGE_ASSERT(!steps.empty());
  switch (format) {
    case ExportFormat::chrome:
      return export_chrome(steps);
    case ExportFormat::svg:
      return export_svg(*steps.back());
    case ExportFormat::csv:
      return export_csv(*steps.back(), table);
    case ExportFormat::memory_viz:
      return export_memory_viz(*steps.back());
  }
  STOWAGE_ASSERT(false && "unknown format");
}

}  // namespace stowage::report
