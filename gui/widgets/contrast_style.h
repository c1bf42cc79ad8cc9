// The desktop's style with frames around fields, buttons, boxes to check, the tab in front and the
// part of a scroll bar that moves, and plain arrows in trees, where colours are high contrast:
// styles shade these from the window's colour, and black has no darker shade.
#pragma once

#include <QProxyStyle>

namespace stowage::gui {

class ContrastStyle : public QProxyStyle {
  Q_OBJECT
 public:
  // `style`: by its name, which is there ("fusion").
  explicit ContrastStyle(const QString& style);

  // Takes the place of the application's style, and draws as it does but for the frames.
  static void install();

  // Hints and what is disabled can be read whatever the desktop's palette leaves out.
  void polish(QPalette& palette) override;
  using QProxyStyle::polish;
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget = nullptr) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                   const QWidget* widget = nullptr) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                          QPainter* painter, const QWidget* widget = nullptr) const override;
};

}  // namespace stowage::gui
