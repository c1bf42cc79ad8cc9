#include "gui/widgets/text_delegate.h"

#include <QApplication>
#include <QPainter>
#include <QStyle>

namespace stowage::gui {
namespace {

constexpr int kMostTexts = 4000;  // kept laid out

}  // namespace

const QStaticText& TextDelegate::laid_out(const QString& text, const QFont& font) const {
  if (font != font_ || texts_.size() > kMostTexts) {
    texts_.clear();
    font_ = font;
  }
  const auto known = texts_.constFind(text);
  if (known != texts_.constEnd()) return *known;
  QStaticText made(text);
  made.setTextFormat(Qt::PlainText);
  made.prepare({}, font);
  return *texts_.insert(text, made);
}

void TextDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                         const QModelIndex& index) const {
  QStyleOptionViewItem cell = option;
  initStyleOption(&cell, index);
  const QStyle* style = cell.widget != nullptr ? cell.widget->style() : QApplication::style();
  style->drawPrimitive(QStyle::PE_PanelItemViewItem, &cell, painter, cell.widget);
  // As the styles of Qt have it.
  const int margin = style->pixelMetric(QStyle::PM_FocusFrameHMargin, &cell, cell.widget) + 1;
  const QRect room = cell.rect.adjusted(margin, 0, -margin, 0);
  QStaticText text = laid_out(cell.text, cell.font);
  if (text.size().width() > room.width()) {
    text = laid_out(cell.fontMetrics.elidedText(cell.text, cell.textElideMode, room.width()),
                    cell.font);
  }
  const QRect at =
      QStyle::alignedRect(cell.direction, cell.displayAlignment, text.size().toSize(), room);
  const QPalette::ColorGroup group =
      !cell.state.testFlag(QStyle::State_Enabled) ? QPalette::Disabled
      : cell.state.testFlag(QStyle::State_Active) ? QPalette::Normal
                                                  : QPalette::Inactive;
  const bool selected = cell.state.testFlag(QStyle::State_Selected);
  painter->setFont(cell.font);
  painter->setPen(cell.palette.color(group, selected ? QPalette::HighlightedText : QPalette::Text));
  painter->drawStaticText(at.topLeft(), text);
  if (!cell.state.testFlag(QStyle::State_HasFocus)) return;
  QStyleOptionFocusRect focus;
  focus.QStyleOption::operator=(cell);
  focus.backgroundColor =
      cell.palette.color(group, selected ? QPalette::Highlight : QPalette::Window);
  style->drawPrimitive(QStyle::PE_FrameFocusRect, &focus, painter, cell.widget);
}

}  // namespace stowage::gui
