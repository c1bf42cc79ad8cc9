#include "gui/widgets/decision_delegate.h"

#include <QComboBox>
#include <QTimer>

#include "gui/model/plan_tree_model.h"

namespace stowage::gui {

QWidget* DecisionDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem&,
                                        const QModelIndex& index) const {
  auto* list = new QComboBox(parent);
  list->setAccessibleName(tr("Decision"));
  const DecisionKind* now = decision_kind(index.data(PlanTreeModel::kind_role).toString());
  const PlanRowKind of = now != nullptr ? now->of : PlanRowKind::saved;
  for (const DecisionKind& kind : decision_kinds()) {
    if (kind.of == of) list->addItem(kind.glyph + QLatin1Char(' ') + kind.action, kind.id);
  }
  auto* self = const_cast<DecisionDelegate*>(this);
  // Arrows in the closed list are a choice too: it is opened, and what is taken there counts.
  connect(list, &QComboBox::activated, self, [self, list] {
    Q_EMIT self->commitData(list);
    Q_EMIT self->closeEditor(list);
  });
  QTimer::singleShot(0, list, &QComboBox::showPopup);
  return list;
}

void DecisionDelegate::setEditorData(QWidget* editor, const QModelIndex& index) const {
  auto* list = static_cast<QComboBox*>(editor);
  list->setCurrentIndex(list->findData(index.data(PlanTreeModel::kind_role)));
}

void DecisionDelegate::setModelData(QWidget* editor, QAbstractItemModel* model,
                                    const QModelIndex& index) const {
  const QVariant id = static_cast<QComboBox*>(editor)->currentData();
  if (id.isValid()) model->setData(index, id, Qt::EditRole);
}

}  // namespace stowage::gui
