// The desktop's style with a frame around fields and buttons where colours are high contrast:
// styles shade their frames from the window's colour, and black has no darker shade.
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
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                          QPainter* painter, const QWidget* widget = nullptr) const override;
};

}  // namespace stowage::gui
