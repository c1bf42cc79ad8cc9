#include "gui/widgets/late_refresh.h"

#include <utility>

namespace stowage::gui {

LateRefresh::LateRefresh(QWidget& view, std::function<void()> refresh)
    : view_(view), refresh_(std::move(refresh)) {}

bool LateRefresh::put_off() {
  if (!dock_) {
    for (QWidget* at = view_.parentWidget(); at != nullptr && !dock_; at = at->parentWidget()) {
      dock_ = qobject_cast<QDockWidget*>(at);
    }
    if (!dock_) return false;
    connect(dock_, &QDockWidget::visibilityChanged, this, [this](bool visible) {
      if (visible) shown();
    });
  }
  // Behind a tab it is moved out of the window, not hidden.
  stale_ = !showing_ && dock_->window()->isVisible() && view_.visibleRegion().isEmpty();
  return stale_;
}

void LateRefresh::shown() {
  if (!stale_) return;
  stale_ = false;
  showing_ = true;
  refresh_();
  showing_ = false;
}

}  // namespace stowage::gui
