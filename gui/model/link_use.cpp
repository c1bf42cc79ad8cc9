#include "gui/model/link_use.h"

#include <algorithm>
#include <cmath>

namespace stowage::gui {
namespace {

void add_lane(const LaneView& lane, const TimeAxis& axis, std::vector<double>& pixels,
              double& most) {
  const double pixel = axis.ns_per_pixel();
  for (const LaneRow& row : lane.rows) {
    for (std::size_t i = 0; i < row.spans.size(); ++i) {
      const auto begin = static_cast<double>(row.spans.begin(i));
      const auto end = static_cast<double>(row.spans.end(i));
      if (end <= begin) continue;
      // Bytes a nanosecond are GB/s.
      const double rate = static_cast<double>(row.bytes_of(i)) / (end - begin);
      most = std::max(most, rate);
      const double from = std::max(begin, axis.begin());
      const double until = std::min(end, axis.end());
      if (until <= from) continue;
      auto x = static_cast<std::size_t>(std::max(0.0, std::floor(axis.x_of(row.spans.begin(i)))));
      for (; x < pixels.size(); ++x) {
        const double left = axis.begin() + static_cast<double>(x) * pixel;
        if (left >= until) break;
        const double inside = std::min(until, left + pixel) - std::max(from, left);
        if (inside > 0) pixels[x] += rate * inside / pixel;
      }
    }
  }
}

}  // namespace

LinkUse link_use(const StepPicture& view, const TimeAxis& axis) {
  LinkUse use;
  const auto width = static_cast<std::size_t>(std::max(0.0, axis.width()));
  use.out.resize(width, 0);
  use.back.resize(width, 0);
  add_lane(view.lane(LaneKind::d2h), axis, use.out, use.most);
  add_lane(view.lane(LaneKind::h2d), axis, use.back, use.most);
  return use;
}

}  // namespace stowage::gui
