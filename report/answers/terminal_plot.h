// A memory curve drawn with characters.
//
//     161 MB |        ▂▄▆█▆▄▂
//            |     ▃▆█████████▅▂
//      97 MB |┄┄▄█████████████████▅┄┄┄   budget
//            | ▅████████████████████▆▃
//          0 |▆███████████████████████
//             forward      |backward
//
// A column shows the *maximum* of the curve over its span of time, so the peak is always seen; a
// cell is filled in eighths (in whole cells without Unicode).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/memory_curve.h"
#include "report/moment.h"
#include "traces/size_text.h"
#include "traces/units.h"

namespace stowage::report {

struct PlotOptions {
  int width = 80;  // of the whole drawing, labels included; at least 40
  int height = 8;  // rows of the curve
  bool unicode = true;
  std::optional<Bytes> budget;  // a dashed line
  Bytes scale = 0;              // bytes at the top; 0 = the curve's own maximum
  ByteUnits units = ByteUnits::decimal;
  std::vector<PhaseSpan> spans;  // in order of begin
};

// Lines with a newline each; empty for a curve without points.
[[nodiscard]] std::string draw(const MemoryCurve& curve, const PlotOptions& options);

}  // namespace stowage::report
