#include "gui/widgets/range_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <functional>

#include "gui/widgets/keys.h"
#include "gui/widgets/sorted_item.h"
#include "gui/widgets/value_texts.h"
#include "report/words.h"

namespace stowage::gui {
namespace {

enum WorkColumn { kWorkName, kWorkCount, kWorkTime, kWorkShare, kWorkColumns };
SortedItem* work_row(const QString& name, std::int64_t count, Nanoseconds time, Nanoseconds all,
                     const Selection& link) {
  auto* item = new SortedItem({name, count_text(count), time_text(time),
                               QString::fromStdString(report::percent(time, all))},
                              link);
  item->setToolTip(kWorkName, name);
  item->setToolTip(kWorkTime, RangeView::tr("%1 ns").arg(count_text(time)));
  item->set_number(kWorkCount, count);
  item->set_number(kWorkTime, time);
  item->set_number(kWorkShare, time);
  return item;
}

}  // namespace

RangeView::RangeView(PlanDocument& document, ViewState& state, QWidget* parent)
    : QWidget(parent),
      document_(document),
      state_(state),
      grouping_(new QComboBox(this)),
      title_(new QLabel(this)),
      rows_(new QTreeWidget),
      stack_(new EmptyStack(rows_, this)) {
  setObjectName(QStringLiteral("range"));
  setAccessibleName(tr("What runs in the range"));
  grouping_->addItems({tr("by op"), tr("by kernel")});
  grouping_->setAccessibleName(tr("Grouping of the range"));
  grouping_->setToolTip(
      tr("by op: the outermost op that launched it; by kernel: kernels, copies and memsets by "
         "their names"));
  title_->setWordWrap(true);
  // Two lines at least and no more than the row has: the window may be small.
  title_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  title_->setMinimumHeight(2 * fontMetrics().lineSpacing());
  title_->setAccessibleName(tr("Range and its sum"));
  rows_->setColumnCount(kWorkColumns);
  rows_->setHeaderLabels({tr("What"), tr("Count"), tr("Time"), tr("Share")});
  rows_->headerItem()->setToolTip(kWorkCount, tr("One that the range cuts counts"));
  rows_->headerItem()->setToolTip(kWorkTime, tr("On the device, within the range"));
  rows_->headerItem()->setToolTip(kWorkShare, tr("Of all work within the range"));
  for (const int column : {kWorkCount, kWorkTime, kWorkShare}) {
    rows_->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  }
  rows_->setRootIsDecorated(false);
  rows_->setUniformRowHeights(true);
  rows_->setTextElideMode(Qt::ElideMiddle);
  rows_->header()->setSortIndicator(kWorkTime, Qt::DescendingOrder);
  rows_->setSortingEnabled(true);
  rows_->setAccessibleName(tr("What runs in the range"));
  rows_->setAccessibleDescription(
      tr("Return selects the longest one, F shows it in the timeline, Ctrl+C copies all rows"));
  // Names get what the figures leave.
  const int em = fontMetrics().horizontalAdvance(QLatin1Char('m'));
  constexpr int kWidths[] = {8, 5, 7, 6};
  for (int i = 0; i < kWorkColumns; ++i) rows_->setColumnWidth(i, kWidths[i] * em);
  rows_->header()->setStretchLastSection(false);
  rows_->header()->setSectionResizeMode(kWorkName, QHeaderView::Stretch);
  rows_->installEventFilter(this);
  auto* top = new QHBoxLayout;
  top->addWidget(grouping_);
  top->addWidget(title_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(top);
  layout->addWidget(stack_, 1);
  connect(grouping_, &QComboBox::currentIndexChanged, this, &RangeView::refresh);
  connect(rows_, &QTreeWidget::itemDoubleClicked, this, &RangeView::select);
  on_row_menu(*rows_, std::bind_front(&RangeView::select, this),
              std::bind_front(&RangeView::menu_requested, this));
  connect(&document_, &PlanDocument::opened, this, &RangeView::refresh);
  connect(&document_, &PlanDocument::changed, this, &RangeView::refresh);
  connect(&state_, &ViewState::shown_changed, this, &RangeView::refresh);
  connect(&state_, &ViewState::range_changed, this, &RangeView::refresh);
  refresh();
}

void RangeView::refresh() {
  if (late_.put_off()) {
    // What nobody sees holds no step that is gone.
    work_.reset();
    work_of_ = nullptr;
    return;
  }
  rows_->clear();
  title_->clear();
  table_ = {};
  const SimulatedPtr& current = document_.current();
  const bool recorded = document_.shows_recorded(state_.shown());
  const StepPicturePtr view = recorded ? document_.recorded() : document_.planned();
  if (work_of_ != view) work_.reset();
  work_of_ = view;
  if (!current || !view) {
    return stack_->set_reason(tr("No trace is open. Open one with Ctrl+O, or record a step."));
  }
  if (!work_) work_.emplace(*current, *view, recorded);
  const WorkGroup by = grouping_->currentIndex() == 0 ? WorkGroup::op : WorkGroup::kernel;
  if (by == WorkGroup::kernel && !work_->has_kernels()) {
    return stack_->set_reason(
        tr("The trace has no kernels: on the CPU device ops are the compute itself."));
  }
  const TimeRange range = state_.range().value_or(TimeRange{0, view->end});
  table_ = work_->within(range, by);
  const QString step = recorded ? tr("recorded") : tr("planned");
  title_->setText(tr("%1, %2: %3 of work, stalls %4")
                      .arg(state_.range()
                               ? tr("%1 from %2 on of the %3 step")
                                     .arg(time_text(range.duration()), time_text(range.begin), step)
                               : tr("the whole %1 step").arg(step),
                           word_for(view->source), time_text(table_.time),
                           time_text(measure(*view, range).stall)));
  if (table_.rows.empty()) return stack_->set_reason(tr("The device does nothing in this range."));
  stack_->set_reason({});
  fill();
}

void RangeView::fill() {
  QList<QTreeWidgetItem*> items;
  for (const WorkRow& row : table_.rows) {
    items << work_row(QString::fromStdString(row.name), row.count, row.time, table_.time,
                      row.longest);
  }
  SortedItem* sum = work_row(tr("all of it"), table_.count, table_.time, table_.time, {});
  sum->set_sum();
  QFont bold = rows_->font();
  bold.setBold(true);
  for (int column = 0; column < kWorkColumns; ++column) sum->setFont(column, bold);
  items << sum;
  // Sorted once, when all are there.
  rows_->setSortingEnabled(false);
  rows_->addTopLevelItems(items);
  rows_->setSortingEnabled(true);
}

void RangeView::select(QTreeWidgetItem* item) {
  const Selection link = SortedItem::link_of(item);
  if (link.kind == Selection::Kind::none) return;
  const bool recorded = work_of_ && work_of_->source == Source::measured;
  const StepRowsPtr rows = document_.current() ? document_.current()->rows : nullptr;
  state_.select(recorded ? in_step(rows, link) : link);
}

void RangeView::copy() const {
  QGuiApplication::clipboard()->setText(table_text(title_->text(), *rows_));
}

bool RangeView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == rows_ && event->type() == QEvent::KeyPress) {
    const std::optional<Key> key = key_of(*static_cast<QKeyEvent*>(event), KeyPlace::rows);
    if (key == Key::follow || key == Key::centre) select(rows_->currentItem());
    if (key == Key::centre) state_.centre_selection();
    if (key == Key::peak) Q_EMIT peak_requested();
    if (key == Key::copy) copy();
    if (key) return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace stowage::gui
