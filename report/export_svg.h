// A step as a picture (SVG 1.1, 1200 x 700): memory by class with the budget's line, lanes with
// stalls, a legend, units on both axes. Readable in print and in a browser, without scripts.
#pragma once

#include <string>

#include "report/step_view.h"

namespace stowage::report {

// The curve shows the highest moment of each column of pixels, so the peak is always seen; spans
// narrower than a pixel are folded. Size: about 100 kB, whatever the step. Cost: O(points * classes
// + spans).
[[nodiscard]] std::string export_svg(const StepView& step);

}  // namespace stowage::report
