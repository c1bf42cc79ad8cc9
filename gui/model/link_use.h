// How many bytes a second go over the link in each direction, over the time that an axis shows.
#pragma once

#include <vector>

#include "gui/model/step_picture.h"
#include "gui/model/time_axis.h"

namespace stowage::gui {

struct LinkUse {
  std::vector<double> out;   // GB/s, 1000-based, by pixel of the axis: to the host
  std::vector<double> back;  // to the device
  double most = 0;           // of both, of the whole step
};

// Each copy moves its bytes evenly over its time; a pixel has the mean of what it covers, so sums
// over pixels are bytes. `most`: no pixel of any axis has more while copies of one direction do not
// overlap. Cost: O(copies + pixels that they cover).
[[nodiscard]] LinkUse link_use(const StepPicture& view, const TimeAxis& axis);

}  // namespace stowage::gui
