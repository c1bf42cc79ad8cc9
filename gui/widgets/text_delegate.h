// Cells of a table or tree that keep their texts laid out: a view that is painted again and again
// while little of it changes (a plan that is being edited) spends most of its time on laying out
// the same words.
#pragma once

#include <QFont>
#include <QHash>
#include <QStaticText>
#include <QStyledItemDelegate>

namespace stowage::gui {

// Paints what QStyledItemDelegate paints of a cell with one line of text and no icon or check box.
class TextDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;

 private:
  [[nodiscard]] const QStaticText& laid_out(const QString& text, const QFont& font) const;

  mutable QFont font_;
  mutable QHash<QString, QStaticText> texts_;
};

}  // namespace stowage::gui
