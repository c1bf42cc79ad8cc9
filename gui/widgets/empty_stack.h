// A view, or in its place the reason why there is nothing in it and what to do.
#pragma once

#include <QLabel>
#include <QStackedWidget>

namespace stowage::gui {

class EmptyStack : public QStackedWidget {
  Q_OBJECT
 public:
  // Takes the ownership of `content`.
  explicit EmptyStack(QWidget* content, QWidget* parent = nullptr);

  // An empty text shows the content.
  void set_reason(const QString& text);
  [[nodiscard]] QString reason() const;

 private:
  QLabel* label_;
};

}  // namespace stowage::gui
