#include "gui/widgets/plan_tree_view.h"

#include <QContextMenuEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/decision_delegate.h"
#include "gui/widgets/keys.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {
PlanTreeView::PlanTreeView(PlanDocument& document, ViewState& state, Explanations& explanations,
                           QWidget* parent)
    : QWidget(parent),
      document_(document),
      state_(state),
      model_(document, explanations),
      filter_(new QLineEdit(this)),
      tree_(new QTreeView),
      stack_(new EmptyStack(tree_, this)),
      summary_(new QLabel(this)) {
  setObjectName(QStringLiteral("plan"));
  setAccessibleName(tr("Plan"));
  filtered_.setSourceModel(&model_);
  filter_->setPlaceholderText(tr("Filter by name or decision, e.g. mlp offload"));
  filter_->setAccessibleName(tr("Filter of the plan's rows"));
  filter_->setToolTip(tr("Rows whose name or decision has all of these words; Esc shows all"));
  filter_->setClearButtonEnabled(true);
  summary_->setAccessibleName(tr("Summary of the plan"));
  summary_->setWordWrap(true);

  tree_->setObjectName(QStringLiteral("plan_tree"));
  tree_->setAccessibleName(tr("Layers and their saved tensors"));
  tree_->setAccessibleDescription(
      tr("K keeps, O offloads, R recomputes what is selected, P pins it; Return opens the list of "
         "decisions"));
  tree_->setModel(&filtered_);
  tree_->setUniformRowHeights(true);
  tree_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  tree_->setAllColumnsShowFocus(true);
  tree_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  tree_->setExpandsOnDoubleClick(false);
  tree_->setItemDelegate(new TextDelegate(tree_));
  tree_->setItemDelegateForColumn(PlanTreeModel::decision_column, new DecisionDelegate(tree_));
  tree_->setSortingEnabled(true);
  tree_->sortByColumn(PlanTreeModel::name_column, Qt::AscendingOrder);
  const int em = fontMetrics().horizontalAdvance(QLatin1Char('m'));
  tree_->setItemDelegateForColumn(PlanTreeModel::pin_column, new QStyledItemDelegate(tree_));
  const int widths[PlanTreeModel::columns] = {18, 6, 16, 3, 6, 6, 5};
  for (int i = 0; i < PlanTreeModel::columns; ++i) tree_->setColumnWidth(i, widths[i] * em);
  tree_->header()->setStretchLastSection(false);
  tree_->installEventFilter(this);
  tree_->viewport()->installEventFilter(this);
  filter_->installEventFilter(this);

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(filter_);
  layout->addWidget(stack_, 1);
  layout->addWidget(summary_);

  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    filtered_.set_text(text);
    expand_found();
    tell();
  });
  connect(tree_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &PlanTreeView::select_in_state);
  connect(tree_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &PlanTreeView::tell);
  connect(&state_, &ViewState::selection_changed, this, &PlanTreeView::show_selection);
  connect(&model_, &PlanTreeModel::refreshed, tree_->viewport(), qOverload<>(&QWidget::update));
  connect(&model_, &PlanTreeModel::refreshed, this, &PlanTreeView::tell);
  tell();
}

QModelIndex PlanTreeView::view_index(std::int32_t row, int column) const {
  return filtered_.mapFromSource(model_.index_of(row, column));
}

std::vector<std::int32_t> PlanTreeView::chosen() const {
  std::vector<std::int32_t> rows;
  for (const QModelIndex& index : tree_->selectionModel()->selectedRows()) {
    rows.push_back(index.data(PlanTreeModel::row_role).toInt());
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool PlanTreeView::apply(QChar key, PlanRowKind of_layers) {
  return model_.tree() && apply_key(document_, key, of_layers, *model_.tree(), chosen());
}

PlanTreeModel::Share PlanTreeView::pins_of_chosen() const {
  PlanTreeModel::Share sum;
  if (!model_.tree()) return sum;
  const PlanTree& tree = *model_.tree();
  const PlanTree::Targets targets = all_targets_of(tree, chosen());
  const PinnedRows now = document_.pinned_rows();
  sum.decisions = static_cast<std::int32_t>(PinnedRows{}.with(tree, targets, true).size());
  sum.pinned = static_cast<std::int32_t>(now.size() - now.with(tree, targets, false).size());
  return sum;
}

bool PlanTreeView::toggle_pins() {
  const PlanTreeModel::Share pins = pins_of_chosen();
  if (pins.decisions == 0) return false;
  const PlanTree& tree = *model_.tree();
  const bool pinned = pins.pinned < pins.decisions;
  const PlanTree::Targets targets = all_targets_of(tree, chosen());
  return document_.set_pinned_rows(document_.pinned_rows().with(tree, targets, pinned));
}

void PlanTreeView::add_pin_entries(QMenu& menu) {
  const PlanTreeModel::Share pins = pins_of_chosen();
  const bool all_are = pins.decisions > 0 && pins.pinned == pins.decisions;
  QString text = pins.decisions > 1
                     ? (all_are ? tr("Unpin these decisions (%1)") : tr("Pin these decisions (%1)"))
                           .arg(count_text(pins.decisions))
                 : all_are ? tr("Unpin this decision")
                           : tr("Pin this decision");
  text +=
      QLatin1Char('\t') + sequence_of(Key::pin, KeyPlace::plan).toString(QKeySequence::NativeText);
  QAction* pin = menu.addAction(text);
  pin->setObjectName(QStringLiteral("pin"));
  pin->setToolTip(tr("A search leaves what is pinned as it is"));
  pin->setEnabled(pins.decisions > 0);
  connect(pin, &QAction::triggered, this, &PlanTreeView::toggle_pins);
  QAction* none = menu.addAction(tr("Unpin all"));
  none->setObjectName(QStringLiteral("unpin_all"));
  none->setEnabled(!document_.pinned_rows().empty());
  connect(none, &QAction::triggered, this, [this] { document_.set_pinned_rows({}); });
  menu.addSeparator();
}

void PlanTreeView::fill_menu(QMenu& menu) {
  const auto add = [&](const DecisionKind& kind) {
    QString text = kind.action;
    const std::size_t count =
        model_.tree() ? model_.tree()->targets_of(chosen(), kind.of).count(kind.of) : 0;
    if (count > 1) text += tr(" (%1)").arg(count_text(static_cast<std::int64_t>(count)));
    text += QLatin1Char('\t') + sequence_of(kind).toString(QKeySequence::NativeText);
    QAction* action = menu.addAction(text);
    action->setToolTip(kind.help);
    action->setStatusTip(kind.help);
    action->setData(kind.id);
    action->setEnabled(count > 0 && document_.can_edit());
    connect(action, &QAction::triggered, this,
            [this, key = kind.key, of = kind.of] { apply(key, of); });
  };
  menu.setToolTipsVisible(true);
  for (const DecisionKind& kind : decision_kinds()) add(kind);
  menu.addSeparator();
  add_pin_entries(menu);
  QAction* centre = menu.addAction(tr("Show in the timeline\tF"));
  centre->setEnabled(state_.selection().kind != Selection::Kind::none);
  connect(centre, &QAction::triggered, &state_, &ViewState::centre_selection);
  QAction* expand = menu.addAction(tr("Unfold all"));
  connect(expand, &QAction::triggered, tree_, &QTreeView::expandAll);
  QAction* collapse = menu.addAction(tr("Fold all"));
  connect(collapse, &QAction::triggered, tree_, &QTreeView::collapseAll);
}

bool PlanTreeView::key_pressed(QKeyEvent& event) {
  const std::optional<Key> key = key_of(event, KeyPlace::plan);
  if (event.type() == QEvent::ShortcutOverride) return key == Key::decide || key == Key::pin;
  if (key == Key::decide) {
    apply(QChar(static_cast<ushort>(event.key())),
          of_layers_with(event.modifiers() & ~Qt::KeypadModifier));
  } else if (key == Key::pin) {
    toggle_pins();
  } else if (key == Key::choose_decision) {
    const QModelIndex current = tree_->currentIndex();
    if (!current.isValid() || tree_->indexWidget(current) != nullptr) return false;
    tree_->edit(current.siblingAtColumn(PlanTreeModel::decision_column));
  } else if (key == Key::centre) {
    state_.centre_selection();
  }
  return key.has_value();
}

bool PlanTreeView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == tree_ &&
      (event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride)) {
    if (key_pressed(*static_cast<QKeyEvent*>(event))) {
      event->accept();
      return true;
    }
  }
  if (watched == filter_ && event->type() == QEvent::KeyPress) {
    const std::optional<Key> key = key_of(*static_cast<QKeyEvent*>(event), KeyPlace::filter);
    if (key == Key::clear && !filter_->text().isEmpty()) {
      filter_->clear();
      return true;
    }
    if (key == Key::to_rows) {
      tree_->setFocus(Qt::TabFocusReason);
      if (!tree_->currentIndex().isValid()) tree_->setCurrentIndex(filtered_.index(0, 0));
      return true;
    }
  }
  if (event->type() == QEvent::ContextMenu && watched != filter_) {
    const auto* asked = static_cast<QContextMenuEvent*>(event);
    QMenu menu(this);
    fill_menu(menu);
    QPoint at = asked->globalPos();
    if (asked->reason() == QContextMenuEvent::Keyboard) {
      at = tree_->viewport()->mapToGlobal(tree_->visualRect(tree_->currentIndex()).bottomLeft());
    }
    menu.exec(at);
    return true;
  }
  if (event->type() == QEvent::Resize && watched == tree_->viewport()) give_names_the_rest();
  return QWidget::eventFilter(watched, event);
}

void PlanTreeView::give_names_the_rest() {
  constexpr int kLeast = 10;  // letters
  int left = tree_->viewport()->width();
  for (int i = 0; i < PlanTreeModel::columns; ++i) {
    if (i != PlanTreeModel::name_column) left -= tree_->columnWidth(i);
  }
  const int least = kLeast * fontMetrics().horizontalAdvance(QLatin1Char('m'));
  tree_->setColumnWidth(PlanTreeModel::name_column, std::max(left, least));
}

void PlanTreeView::expand_found() {
  if (filter_->text().isEmpty()) return;
  // A filter that leaves little shows it; unfolding everything of a large model takes a while.
  constexpr int kFew = 12;
  if (filtered_.rowCount() <= kFew) tree_->expandToDepth(3);
}

void PlanTreeView::tell() {
  const auto& tree = model_.tree();
  if (!tree) {
    stack_->set_reason(document_.trace()
                           ? tr("The step is being explained.")
                           : tr("No trace is open. Open one with Ctrl+O, or record a step."));
    summary_->clear();
    return;
  }
  if (tree->rows.empty()) {
    stack_->set_reason(tr(
        "This step saves no tensors and has no parameters in layers: there is nothing to decide. "
        "Was it recorded without backward?"));
    summary_->clear();
    return;
  }
  if (filtered_.rowCount() == 0) {
    stack_->set_reason(
        tr("No row has “%1” in its name or decision. Esc clears the filter.").arg(filter_->text()));
  } else {
    stack_->set_reason({});
  }
  PlanTreeModel::Share sum;
  for (const std::int32_t at : tree->top) sum.add(model_.share_of(at));
  QString text =
      tr("%1 of %2 saved tensors offload").arg(count_text(sum.offloaded), count_text(sum.all));
  if (sum.recomputed > 0) text += tr(", %1 recompute").arg(count_text(sum.recomputed));
  if (sum.parameters_away > 0) {
    text += tr(" · parameters of %1 of %2 layers stream")
                .arg(count_text(sum.parameters_away), count_text(sum.parameters));
  }
  if (sum.state_away > 0) {
    text += tr(" · optimizer state of %1 of %2 layers streams")
                .arg(count_text(sum.state_away), count_text(sum.state));
  }
  if (sum.state_on_host > 0) {
    text += tr(" · %1 of %2 layers updated on the host")
                .arg(count_text(sum.state_on_host), count_text(sum.state));
  }
  if (sum.pinned > 0) {
    text +=
        tr(" · %1 of %2 decisions pinned").arg(count_text(sum.pinned), count_text(sum.decisions));
  }
  const std::vector<std::int32_t> rows = chosen();
  if (rows.size() > 1) {
    Bytes bytes = 0;
    for (const std::int32_t row : rows) bytes += tree->rows[static_cast<std::size_t>(row)].bytes;
    text += tr(" · %1 rows selected, %2")
                .arg(count_text(static_cast<std::int64_t>(rows.size())), bytes_text(bytes));
  }
  summary_->setText(text);
}

StepRowsPtr PlanTreeView::rows() const {
  return document_.current() ? document_.current()->rows : nullptr;
}

void PlanTreeView::select_in_state() {
  const QModelIndex current = tree_->currentIndex();
  if (!current.isValid() || !model_.tree()) return;
  const int at = current.data(PlanTreeModel::row_role).toInt();
  const PlanRow& row = model_.tree()->rows[static_cast<std::size_t>(at)];
  selecting_ = true;
  if (row.kind == PlanRowKind::saved) {
    state_.select(in_step(rows(), {Selection::Kind::saved, row.saved.value}));
  } else if (row.streaming >= 0) {
    const StreamingLayer& layer = model_.tree()->streaming_of(row);
    state_.select(in_step(rows(), {Selection::Kind::storage, layer.storages.front().value}));
  } else {
    state_.select({Selection::Kind::layer, row.layer.value});
  }
  selecting_ = false;
}

void PlanTreeView::show_selection() {
  if (selecting_ || !model_.tree()) return;
  const PlanTree& tree = *model_.tree();
  const Selection selection = in_recording(rows(), state_.selection());
  std::int32_t row = -1;
  if (selection.row < 0) return;
  const auto at = static_cast<std::size_t>(selection.row);
  if (selection.kind == Selection::Kind::saved) row = tree.row_of_saved[at];
  if (selection.kind == Selection::Kind::layer) row = tree.row_of_layer[at];
  if (selection.kind == Selection::Kind::storage) {
    const auto& storages = tree.trace().saved.storage;
    const auto found = std::find(storages.begin(), storages.end(), StorageId(at));
    if (found != storages.end()) {
      row = tree.row_of_saved[static_cast<std::size_t>(found - storages.begin())];
    }
  }
  const QModelIndex index = view_index(row);
  if (!index.isValid()) return;
  selecting_ = true;
  tree_->setCurrentIndex(index);
  tree_->scrollTo(index);
  selecting_ = false;
}

}  // namespace stowage::gui
