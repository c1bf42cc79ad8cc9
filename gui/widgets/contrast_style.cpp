#include "gui/widgets/contrast_style.h"

#include <QApplication>
#include <QPainter>
#include <QStyleOption>

#include "gui/widgets/theme.h"

namespace stowage::gui {
namespace {

constexpr int kRadius = 2;

void paint_frame(const QStyleOption& option, QPainter& painter, int width) {
  if (!is_high_contrast(option.palette)) return;
  const double half = width / 2.0;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(option.palette.color(QPalette::Text), width));
  painter.drawRoundedRect(QRectF(option.rect).adjusted(half, half, -half, -half), kRadius, kRadius);
  painter.restore();
}

// In the colour of the text, so that what is disabled looks so; twice as thick where the focus is.
void paint_frame(const QStyleOption& option, QPainter& painter) {
  paint_frame(option, painter, option.state.testFlag(QStyle::State_HasFocus) ? 2 : 1);
}

// What folds and unfolds a row with others under it.
void paint_fold(const QStyleOption& option, QPainter& painter) {
  if (!is_high_contrast(option.palette) || !option.state.testFlag(QStyle::State_Children)) return;
  const QPointF c = QRectF(option.rect).center();
  const bool is_open = option.state.testFlag(QStyle::State_Open);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(option.palette.color(QPalette::Text));
  painter.drawPolygon(
      is_open ? QPolygonF({c + QPointF(-5, -3), c + QPointF(5, -3), c + QPointF(0, 4)})
              : QPolygonF({c + QPointF(-3, -5), c + QPointF(-3, 5), c + QPointF(4, 0)}));
  painter.restore();
}

}  // namespace

ContrastStyle::ContrastStyle(const QString& style) : QProxyStyle(style) {}

void ContrastStyle::install() {
  QApplication::setStyle(new ContrastStyle(QApplication::style()->name()));
}

void ContrastStyle::polish(QPalette& palette) {
  QProxyStyle::polish(palette);
  palette = readable(palette);
}

void ContrastStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option,
                                  QPainter* painter, const QWidget* widget) const {
  QProxyStyle::drawPrimitive(element, option, painter, widget);
  switch (element) {
    case PE_FrameLineEdit:
    case PE_PanelButtonCommand:
    case PE_IndicatorCheckBox:
    case PE_IndicatorItemViewItemCheck:
      return paint_frame(*option, *painter);
    case PE_IndicatorBranch:
      return paint_fold(*option, *painter);
    default:
      return;
  }
}

void ContrastStyle::drawControl(ControlElement element, const QStyleOption* option,
                                QPainter* painter, const QWidget* widget) const {
  QProxyStyle::drawControl(element, option, painter, widget);
  // The others have the window's colour around them.
  if (element == CE_TabBarTabShape && option->state.testFlag(State_Selected)) {
    paint_frame(*option, *painter, 2);
  }
}

void ContrastStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                                       QPainter* painter, const QWidget* widget) const {
  QProxyStyle::drawComplexControl(control, option, painter, widget);
  const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option);
  const auto* list = qstyleoption_cast<const QStyleOptionComboBox*>(option);
  const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
  const bool framed = (spin != nullptr && spin->frame) || (list != nullptr && list->frame) ||
                      (button != nullptr && !option->state.testFlag(State_AutoRaise));
  if (framed) paint_frame(*option, *painter);
  const auto* bar = qstyleoption_cast<const QStyleOptionSlider*>(option);
  if (control == CC_ScrollBar && bar != nullptr) {
    QStyleOption slider = *option;
    slider.rect = subControlRect(CC_ScrollBar, bar, SC_ScrollBarSlider, widget);
    paint_frame(slider, *painter);
  }
}

}  // namespace stowage::gui
