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

#include "traces/units.h"

namespace stowage::cli {

// A step function: bytes[i] holds from time[i] until time[i + 1]; the last one until `end`.
// Times never decrease. Points at the same time are all seen.
struct MemoryCurve {
  std::vector<Nanoseconds> time;
  std::vector<Bytes> bytes;
  Nanoseconds end = 0;
};

// A stretch of the time axis with a name below it.
struct PlotSpan {
  std::string name;
  Nanoseconds begin = 0;
};

struct PlotOptions {
  int width = 80;  // of the whole drawing, labels included; at least 40
  int height = 8;  // rows of the curve
  bool unicode = true;
  std::optional<Bytes> budget;  // a dashed line
  Bytes scale = 0;              // bytes at the top; 0 = the curve's own maximum
  std::vector<PlotSpan> spans;  // in order of begin
};

// The maximum over each of `columns` equal spans of [time.front(), end]. Cost: O(points + columns).
[[nodiscard]] std::vector<Bytes> column_maxima(const MemoryCurve& curve, int columns);

// Lines with a newline each; empty for a curve without points.
[[nodiscard]] std::string draw(const MemoryCurve& curve, const PlotOptions& options);

}  // namespace stowage::cli
