#include "gui/widgets/contrast_style.h"

#include <QApplication>
#include <QPainter>
#include <QStyleOption>

#include "gui/widgets/theme.h"

namespace stowage::gui {
namespace {

constexpr int kRadius = 2;

// In the colour of the text, so that what is disabled looks so; twice as thick where the focus is.
void paint_frame(const QStyleOption& option, QPainter& painter) {
  if (!is_high_contrast(option.palette)) return;
  const int width = option.state.testFlag(QStyle::State_HasFocus) ? 2 : 1;
  const double half = width / 2.0;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(option.palette.color(QPalette::Text), width));
  painter.drawRoundedRect(QRectF(option.rect).adjusted(half, half, -half, -half), kRadius, kRadius);
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
  if (element == PE_FrameLineEdit || element == PE_PanelButtonCommand) {
    paint_frame(*option, *painter);
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
}

}  // namespace stowage::gui
