// Which exporters there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/export_csv.h"
#include "report/step_view.h"

namespace stowage::report {

enum class ExportFormat : std::uint8_t { chrome, svg, csv, memory_viz };
[[nodiscard]] const char* name_of(ExportFormat value);  // "memory-viz"
// By the file's ending, ".gz" left out: .json, .svg, .csv, .pickle or .pkl.
[[nodiscard]] std::optional<ExportFormat> export_format_of_file(std::string_view path);

// The last of `steps` in a format that shows one step, all of them as a Chrome trace. `table` is
// for CSV alone. Precondition: there is a step, and all are of one trace.
[[nodiscard]] std::string export_steps(const std::vector<const StepView*>& steps,
                                       ExportFormat format, CsvTable table);

}  // namespace stowage::report
