// What ParetoPainter writes: names beside the marks, and the legend.
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/widgets/pareto_painter.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

constexpr double kSamePlace = 2;  // px

}  // namespace

std::vector<int> ParetoPainter::at_place_of(int mark) const {
  const QPointF place = position(content_.marks[static_cast<std::size_t>(mark)]);
  std::vector<int> found;
  for (std::size_t i = 0; i < content_.marks.size(); ++i) {
    const QPointF off = position(content_.marks[i]) - place;
    if (std::hypot(off.x(), off.y()) <= kSamePlace) found.push_back(static_cast<int>(i));
  }
  return found;
}

QString ParetoPainter::legend() const {
  const auto has = [&](const auto& test) {
    return std::any_of(content_.marks.begin(), content_.marks.end(), test);
  };
  QStringList parts;
  const std::pair<ParetoMark::Kind, QString> kinds[] = {
      {ParetoMark::Kind::planned, QObject::tr("● planned, ○ another is better")},
      {ParetoMark::Kind::policy, QObject::tr("◆ policy")},
      {ParetoMark::Kind::resident, QObject::tr("■ nothing moved")},
      {ParetoMark::Kind::hand, QObject::tr("✕ by hand, or from a file")},
      {ParetoMark::Kind::current, QObject::tr("⊕ current plan")},
  };
  for (const auto& [kind, text] : kinds) {
    if (has([kind = kind](const ParetoMark& mark) { return mark.kind == kind; })) parts << text;
  }
  if (has([&](const ParetoMark& mark) { return scale_.is_cut(mark.step); })) {
    parts << QObject::tr("%1 slower than the scale shows").arg(QChar(kCut));
  }
  return parts.join(QStringLiteral("   "));
}

std::vector<ParetoPainter::Label> ParetoPainter::labels() const {
  const ScatterScale& s = scale_;
  const double gap = 0.7 * metrics_.height();
  std::vector<QRectF> taken{bound_label()};
  for (const ParetoMark& mark : content_.marks) {
    taken.emplace_back(position(mark) - QPointF(gap / 2, gap / 2), QSizeF(gap, gap));
  }
  std::vector<Label> placed;
  for (std::size_t i = 0; i < content_.marks.size(); ++i) {
    const std::vector<int> here = at_place_of(static_cast<int>(i));
    if (here.front() != static_cast<int>(i)) continue;  // in the label of the first
    QStringList lines;
    int wide = 0;
    for (const int row : here) {
      const ParetoMark& mark = content_.marks[static_cast<std::size_t>(row)];
      if (mark.label.isEmpty()) continue;
      lines << (s.is_cut(mark.step)
                    ? QObject::tr("%1 %2 %3").arg(mark.label, QChar(kCut), time_text(mark.step))
                    : mark.label);
      wide = std::max(wide, metrics_.horizontalAdvance(lines.back()));
    }
    if (lines.isEmpty()) continue;
    const QSizeF size(wide, static_cast<double>(metrics_.height() * lines.size()));
    const QPointF at = position(content_.marks[i]);
    std::vector<QPointF> places = {at + QPointF(gap, -size.height() / 2),
                                   at + QPointF(-gap - size.width(), -size.height() / 2),
                                   at + QPointF(-size.width() / 2, -gap - size.height()),
                                   at + QPointF(-size.width() / 2, gap)};
    // Then further away, a line at a time.
    for (int line = 0; line < 6; ++line) {
      const double away = gap / 2 + line * metrics_.height();
      for (const double y : {away, -away - size.height()}) {
        places.push_back(at + QPointF(gap, y));
        places.push_back(at + QPointF(-gap - size.width(), y));
      }
    }
    for (const QPointF& place : places) {
      const QRectF box(place, size);
      const bool free = std::none_of(taken.begin(), taken.end(),
                                     [&](const QRectF& other) { return other.intersects(box); });
      if (!free || !s.plot.contains(box)) continue;
      taken.push_back(box);
      placed.push_back({lines.join(QLatin1Char('\n')), box});
      break;
    }
  }
  return placed;
}

void ParetoPainter::paint_labels(QPainter& painter) const {
  painter.setPen(theme_.text);
  for (const Label& label : labels()) painter.drawText(label.box, Qt::AlignLeft, label.text);
  const double em = metrics_.height();
  const QRectF box(area_.left() + 0.4 * em, area_.bottom() - 1.5 * em, area_.width() - 0.8 * em,
                   1.4 * em);
  painter.drawText(box, Qt::AlignCenter,
                   metrics_.elidedText(legend(), Qt::ElideRight, static_cast<int>(box.width())));
}

}  // namespace stowage::gui
