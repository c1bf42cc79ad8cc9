// The decision column of the plan tree: a list of the decisions of one row, from the table of
// kinds.
#pragma once

#include "gui/widgets/text_delegate.h"

namespace stowage::gui {

class DecisionDelegate : public TextDelegate {
 public:
  using TextDelegate::TextDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option,
                        const QModelIndex& index) const override;
  void setEditorData(QWidget* editor, const QModelIndex& index) const override;
  void setModelData(QWidget* editor, QAbstractItemModel* model,
                    const QModelIndex& index) const override;
};

}  // namespace stowage::gui
