#include "gui/app/message_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QToolButton>

namespace stowage::gui {

MessageBar::MessageBar(QWidget* parent)
    : QFrame(parent), sign_(new QLabel(this)), text_(new QLabel(this)) {
  setObjectName(QStringLiteral("message"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  text_->setAccessibleName(tr("Message"));
  auto* close_button = new QToolButton(this);
  close_button->setText(tr("Close"));
  close_button->setAccessibleName(tr("Close the message"));
  close_button->setToolTip(tr("Close the message"));
  connect(close_button, &QToolButton::clicked, this, &QWidget::hide);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(8, 4, 8, 4);
  layout->addWidget(sign_);
  layout->addWidget(text_, 1);
  layout->addWidget(close_button);
  hide();
}

void MessageBar::show_error(const Error& error) {
  sign_->setText(tr("Error:"));
  text_->setText(QString::fromStdString(error.text()));
  show();
}

void MessageBar::show_note(const QString& text) {
  sign_->setText(tr("Note:"));
  text_->setText(text);
  show();
}

void MessageBar::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange || event->type() == QEvent::PaletteChange) {
    QFont bold = font();
    bold.setBold(true);
    sign_->setFont(bold);
  }
  QFrame::changeEvent(event);
}

}  // namespace stowage::gui
