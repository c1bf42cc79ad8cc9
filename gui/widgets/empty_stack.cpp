#include "gui/widgets/empty_stack.h"

namespace stowage::gui {

EmptyStack::EmptyStack(QWidget* content, QWidget* parent)
    : QStackedWidget(parent), label_(new QLabel(this)) {
  label_->setAlignment(Qt::AlignCenter);
  label_->setWordWrap(true);
  label_->setMargin(fontMetrics().height());
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  addWidget(content);
  addWidget(label_);
}

void EmptyStack::set_reason(const QString& text) {
  label_->setText(text);
  label_->setAccessibleName(text);
  setCurrentIndex(text.isEmpty() ? 0 : 1);
}

QString EmptyStack::reason() const {
  return currentIndex() == 0 ? QString() : label_->text();
}

}  // namespace stowage::gui
