// What went wrong, above the views until it is closed or something works again: no box to click
// away.
#pragma once

#include <QFrame>
#include <QLabel>

#include "traces/result.h"

namespace stowage::gui {

class MessageBar : public QFrame {
  Q_OBJECT
 public:
  explicit MessageBar(QWidget* parent = nullptr);

  void show_error(const Error& error);
  void show_note(const QString& text);
  [[nodiscard]] QString text() const { return text_->text(); }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QLabel* sign_;
  QLabel* text_;
};

}  // namespace stowage::gui
