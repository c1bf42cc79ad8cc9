// The step that is shown as a file for other programs, by report/'s exporters.
#pragma once

#include <cstdint>
#include <string>

#include "gui/model/simulated.h"
#include "traces/result.h"

namespace stowage::gui {

enum class ExportKind : std::uint8_t {
  svg,
  csv_memory,
  csv_timeline,
  csv_stalls,
  csv_storages,
  memory_viz,
  chrome,  // recorded and planned beside each other
  plan,
};

// The planned step, or with `recorded` the recording. Errors: environment (cannot be written).
// Cost: O(trace); for a job in the background.
[[nodiscard]] Status export_step(const Simulated& simulated, bool recorded, ExportKind kind,
                                 const std::string& file);

}  // namespace stowage::gui
