#include "gui/widgets/pareto_plot.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "gui/widgets/keys.h"

namespace stowage::gui {

ParetoPlot::ParetoPlot(QWidget* parent) : QWidget(parent), theme_(Theme::of(palette())) {
  setObjectName(QStringLiteral("pareto_plot"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Plans: memory against step time"));
  setAccessibleDescription(tr("Left and Right go from plan to plan, Return loads it"));
}

void ParetoPlot::show_content(Content content) {
  const auto same = [&](const Mark& mark) {
    const Mark& old = content_.marks[static_cast<std::size_t>(chosen_)];
    return mark.kind == old.kind && mark.peak == old.peak && mark.step == old.step &&
           mark.label == old.label;
  };
  int chosen = -1;
  if (chosen_ >= 0) {
    const auto at = std::find_if(content.marks.begin(), content.marks.end(), same);
    if (at != content.marks.end()) chosen = static_cast<int>(at - content.marks.begin());
  }
  content_ = std::move(content);
  chosen_ = chosen;
  hovered_ = -1;
  update();
}

void ParetoPlot::choose(int mark) {
  if (mark == chosen_ || mark >= static_cast<int>(content_.marks.size())) return;
  chosen_ = mark;
  if (mark >= 0) {
    QString text = content_.marks[static_cast<std::size_t>(mark)].figures;
    setAccessibleDescription(text.replace(QLatin1Char('\n'), QStringLiteral(", ")));
  }
  update();
  Q_EMIT chosen_changed(mark);
}

QSize ParetoPlot::minimumSizeHint() const {
  const int em = fontMetrics().height();
  return {18 * em, 10 * em};
}

QSize ParetoPlot::sizeHint() const {
  const int em = fontMetrics().height();
  return {32 * em, 20 * em};
}

ParetoPainter ParetoPlot::painter_of() const {
  return {content_, QRectF(rect()), font(), theme_};
}

QPointF ParetoPlot::position(int mark) const {
  const Mark& at = content_.marks[static_cast<std::size_t>(mark)];
  return painter_of().position(at);
}

int ParetoPlot::mark_at(const QPointF& where) const {
  const ParetoPainter now = painter_of();
  std::vector<QPointF> points;
  for (const Mark& mark : content_.marks) points.push_back(now.position(mark));
  const int found = ScatterScale::nearest(points, where, 0.9 * fontMetrics().height());
  if (found < 0 || content_.marks[static_cast<std::size_t>(found)].point >= 0) return found;
  // One that can be loaded lies over one that cannot.
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (content_.marks[i].point >= 0 && points[i] == points[static_cast<std::size_t>(found)]) {
      return static_cast<int>(i);
    }
  }
  return found;
}

void ParetoPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter_of().paint(painter, chosen_, hovered_);
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.selection, 1));
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

bool ParetoPlot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const int mark = mark_at(help->pos());
    if (mark < 0) {
      QToolTip::hideText();
      event->ignore();
    } else {
      QStringList figures;
      for (const int row : painter_of().at_place_of(mark)) {
        figures << content_.marks[static_cast<std::size_t>(row)].figures;
      }
      QToolTip::showText(help->globalPos(), figures.join(QStringLiteral("\n\n")), this);
    }
    return true;
  }
  return QWidget::event(event);
}

void ParetoPlot::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) {
    theme_ = Theme::of(palette());
    update();
  }
  QWidget::changeEvent(event);
}

void ParetoPlot::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(content_.marks.size()) - 1;
  const std::optional<Key> key = key_of(*event, KeyPlace::pareto);
  if (last < 0 || !key) return QWidget::keyPressEvent(event);
  switch (*key) {
    case Key::next_point:
      return choose(std::min(chosen_ + 1, last));
    case Key::previous_point:
      return choose(chosen_ < 0 ? last : std::max(chosen_ - 1, 0));
    case Key::first_point:
      return choose(0);
    case Key::last_point:
      return choose(last);
    case Key::load_point: {
      if (chosen_ < 0) break;
      const int point = content_.marks[static_cast<std::size_t>(chosen_)].point;
      if (point >= 0) Q_EMIT load_requested(point);
      return;
    }
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

void ParetoPlot::leaveEvent(QEvent* event) {
  hovered_ = -1;
  update();
  QWidget::leaveEvent(event);
}

void ParetoPlot::mouseMoveEvent(QMouseEvent* event) {
  const int mark = mark_at(event->position());
  if (mark == hovered_) return;
  hovered_ = mark;
  setCursor(mark >= 0 && content_.marks[static_cast<std::size_t>(mark)].point >= 0
                ? Qt::PointingHandCursor
                : Qt::ArrowCursor);
  update();
}

void ParetoPlot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  const int mark = mark_at(event->position());
  if (mark < 0) return;
  choose(mark);
  const int point = content_.marks[static_cast<std::size_t>(mark)].point;
  if (point >= 0) Q_EMIT load_requested(point);
}

}  // namespace stowage::gui
