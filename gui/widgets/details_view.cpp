#include "gui/widgets/details_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QStyle>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/keys.h"

namespace stowage::gui {
namespace {

// Values are as high as their words are in the column's width.
class WrappedValues : public QStyledItemDelegate {
 public:
  explicit WrappedValues(const QTreeWidget& rows, QObject* parent)
      : QStyledItemDelegate(parent), rows_(rows) {}
  [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option,
                               const QModelIndex& index) const override {
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    if (index.column() != 1) return size;
    const QFontMetrics metrics = option.fontMetrics;
    const int margin = 2 * (rows_.style()->pixelMetric(QStyle::PM_FocusFrameHMargin) + 1);
    const QRect room(0, 0, std::max(1, rows_.columnWidth(1) - margin), 100 * metrics.height());
    const QRect words = metrics.boundingRect(room, Qt::TextWordWrap, index.data().toString());
    return {size.width(), std::max(size.height(), words.height())};
  }

 private:
  const QTreeWidget& rows_;
};

QString qstring(const std::string& text) {
  return QString::fromStdString(text);
}

}  // namespace

DetailsView::DetailsView(PlanDocument& document, ViewState& state, Explanations& explanations,
                         QWidget* parent)
    : QWidget(parent),
      document_(document),
      state_(state),
      explanations_(explanations),
      title_(new QLabel(this)),
      keep_(new QPushButton(this)),
      rows_(new QTreeWidget),
      stack_(new EmptyStack(rows_, this)) {
  setObjectName(QStringLiteral("details"));
  setAccessibleName(tr("Details of the selection"));
  QFont bold = title_->font();
  bold.setBold(true);
  title_->setFont(bold);
  title_->setWordWrap(true);
  title_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  title_->setAccessibleName(tr("What is selected"));
  rows_->setColumnCount(2);
  rows_->setHeaderLabels({tr("What"), tr("Value")});
  rows_->setAccessibleName(tr("Details"));
  rows_->setAccessibleDescription(
      tr("Return goes to what a row speaks of, Ctrl+C copies all rows as text"));
  rows_->setWordWrap(true);
  rows_->setItemDelegate(new WrappedValues(*rows_, rows_));
  connect(rows_->header(), &QHeaderView::sectionResized, rows_, [this](int column) {
    if (column == 1) rows_->doItemsLayout();
  });
  rows_->setRootIsDecorated(false);
  rows_->setIndentation(fontMetrics().horizontalAdvance(QLatin1Char('m')));
  rows_->header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  rows_->header()->setStretchLastSection(true);
  rows_->installEventFilter(this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(title_);
  auto* actions = new QHBoxLayout;
  actions->addWidget(keep_);
  actions->addStretch(1);
  layout->addLayout(actions);
  layout->addWidget(stack_, 1);
  keep_->setObjectName(QStringLiteral("keep_instead"));
  keep_->setToolTip(
      tr("It does not leave the device any more; the plan is replayed at once. Ctrl+Z takes that "
         "back"));
  connect(keep_, &QPushButton::clicked, this, &DetailsView::keep_it);
  connect(rows_, &QTreeWidget::itemDoubleClicked, this, &DetailsView::follow_link);
  connect(&state_, &ViewState::selection_changed, this, &DetailsView::refresh);
  connect(&explanations_, &Explanations::changed, this, &DetailsView::refresh);
  connect(&document_, &PlanDocument::opened, this, &DetailsView::refresh);
  refresh();
}

void DetailsView::refresh() {
  const ExplainedPtr& explained = explanations_.current();
  details_ = explained ? details_of(*explained, state_.selection()) : Details{};
  const int row = rows_->currentItem() != nullptr && rows_->currentItem()->parent() == nullptr
                      ? rows_->indexOfTopLevelItem(rows_->currentItem())
                      : -1;
  rows_->clear();
  offer_to_keep();
  title_->setText(qstring(details_.title));
  title_->setVisible(!details_.title.empty());
  if (!document_.trace()) {
    return stack_->set_reason(tr("No trace is open. Open one with Ctrl+O, or record a step."));
  }
  if (!explained) return stack_->set_reason(tr("The step is being explained."));
  if (details_.sections.empty()) {
    return stack_->set_reason(
        tr("What was selected is not in this plan any more. Select something else."));
  }
  stack_->set_reason({});
  QFont bold = rows_->font();
  bold.setBold(true);
  for (const DetailSection& section : details_.sections) {
    auto* heading = new QTreeWidgetItem(rows_, {qstring(section.title)});
    heading->setFirstColumnSpanned(true);
    heading->setFont(0, bold);
    for (const DetailRow& row_text : section.rows) {
      auto* item = new QTreeWidgetItem(heading, {qstring(row_text.name), qstring(row_text.value)});
      const bool linked = row_text.link.kind != Selection::Kind::none && row_text.link.row >= 0 &&
                          !(row_text.link == state_.selection());
      item->setData(0, Qt::UserRole, static_cast<int>(row_text.link.kind));
      item->setData(1, Qt::UserRole, linked ? row_text.link.row : -1);
      item->setToolTip(
          1, linked ? tr("%1\nReturn or a double click goes there").arg(qstring(row_text.value))
                    : qstring(row_text.value));
      item->setData(1, Qt::AccessibleTextRole,
                    tr("%1: %2").arg(qstring(row_text.name), qstring(row_text.value)));
      if (linked) {
        QFont font = rows_->font();
        font.setUnderline(true);
        item->setFont(1, font);
      }
    }
    heading->setExpanded(true);
  }
  if (row >= 0 && row < rows_->topLevelItemCount()) {
    rows_->setCurrentItem(rows_->topLevelItem(row));
  }
}

void DetailsView::offer_to_keep() {
  const ExplainedPtr& explained = explanations_.current();
  const bool is_of_it = explained && explained->simulated == document_.current();
  keeps_ = is_of_it ? keep_instead(*explained, state_.selection()) : KeepInstead{};
  keep_->setVisible(!keeps_.empty());
  keep_->setText(tr("Keep %1 on the device").arg(qstring(keeps_.name)));
}

void DetailsView::keep_it() {
  const KeepInstead what = keeps_;
  // The stall is gone then; what caused it is there.
  if (keep(document_, what)) state_.select(what.then);
}

void DetailsView::follow_link(QTreeWidgetItem* item) {
  if (item == nullptr) return;
  const QVariant row = item->data(1, Qt::UserRole);
  if (!row.isValid() || row.toInt() < 0) return;
  const auto kind = static_cast<Selection::Kind>(item->data(0, Qt::UserRole).toInt());
  state_.select({kind, row.toInt()});
}

void DetailsView::copy() const {
  QGuiApplication::clipboard()->setText(qstring(details_text(details_)));
}

bool DetailsView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == rows_ && event->type() == QEvent::KeyPress) {
    const std::optional<Key> key = key_of(*static_cast<QKeyEvent*>(event), KeyPlace::rows);
    if (key == Key::copy) copy();
    if (key == Key::follow) follow_link(rows_->currentItem());
    if (key == Key::centre) state_.centre_selection();
    if (key == Key::peak) Q_EMIT peak_requested();
    if (key) return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace stowage::gui
