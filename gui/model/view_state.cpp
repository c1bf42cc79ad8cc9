#include "gui/model/view_state.h"

#include <utility>

namespace stowage::gui {

void ViewState::select(const Selection& selection) {
  if (selection == selection_) return;
  selection_ = selection;
  Q_EMIT selection_changed();
}

void ViewState::set_cursor(std::optional<Nanoseconds> time) {
  if (time == cursor_) return;
  cursor_ = time;
  Q_EMIT cursor_changed();
}

void ViewState::set_range(std::optional<TimeRange> range) {
  if (range && range->end < range->begin) std::swap(range->begin, range->end);
  if (range == range_) return;
  range_ = range;
  Q_EMIT range_changed();
}

void ViewState::set_axis(const TimeAxis& axis) {
  if (axis == axis_) return;
  axis_ = axis;
  Q_EMIT axis_changed();
}

void ViewState::set_shown(Shown shown) {
  if (shown == shown_) return;
  shown_ = shown;
  Q_EMIT shown_changed();
}

void ViewState::clear() {
  select({});
  set_range(std::nullopt);
}

}  // namespace stowage::gui
