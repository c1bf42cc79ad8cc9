#include "gui/widgets/alive_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <functional>
#include <limits>

#include "gui/model/name_search.h"
#include "gui/widgets/keys.h"
#include "gui/widgets/sorted_item.h"
#include "gui/widgets/storage_texts.h"
#include "gui/widgets/value_texts.h"
#include "report/less_memory.h"
#include "report/moment.h"
#include "report/words.h"

namespace stowage::gui {
namespace {

// The smallest ones of a large step are summed up.
constexpr std::size_t kMostStorages = 500;

enum Column {
  kWhat,
  kSize,
  kShare,
  kClass,
  kUse,
  kShape,
  kDtype,
  kMaker,
  kBorn,
  kDies,
  kAliveColumns
};

SortedItem* alive_row(const report::Alive& alive, const QString& what, Bytes bytes,
                      const QString& of, const Selection& link, const QString& use = {}) {
  auto* item =
      new SortedItem({what, bytes_text(bytes),
                      QString::fromStdString(report::percent(bytes, alive.bytes)), of, use},
                     link);
  item->setToolTip(kSize, exact_bytes_text(bytes));
  item->set_number(kSize, bytes);
  item->set_number(kShare, bytes);
  item->setToolTip(kUse, use);
  return item;
}

SortedItem* group_row(const report::Alive& alive, const QString& what, Bytes bytes,
                      std::int64_t storages, const Selection& link = {}) {
  SortedItem* item = alive_row(alive, what, bytes,
                               QString::fromStdString(report::count_of(storages, "storage")), link);
  const Qt::Alignment words = Qt::AlignLeft | Qt::AlignVCenter;
  item->set_number(kClass, storages);
  item->setTextAlignment(kClass, words);
  return item;
}

QString words_of_use(report::ByteUse use) {
  switch (use) {
    case report::ByteUse::needed:
      return AliveView::tr("needed");
    case report::ByteUse::saved:
      return AliveView::tr("saved and idle");
    case report::ByteUse::idle:
      return AliveView::tr("idle");
    case report::ByteUse::dead:
      return AliveView::tr("dead");
  }
  return {};
}

// "dead since 892 ms", "idle until 1.90 s"
QString use_text(const report::AliveUse& row, const std::vector<Nanoseconds>& times) {
  const auto at = [&](EventId event) { return time_text(times[event.index()]); };
  const QString word = words_of_use(row.use);
  if (row.use == report::ByteUse::dead && row.last_use.valid()) {
    return AliveView::tr("%1 since %2").arg(word, at(row.last_use));
  }
  if (row.use == report::ByteUse::saved || row.use == report::ByteUse::idle) {
    return row.next_use.valid() ? AliveView::tr("%1 until %2").arg(word, at(row.next_use))
                                : AliveView::tr("%1 for the rest of the step").arg(word);
  }
  return word;
}

// A column of a moment; what is ahead of the step is sorted first, what is behind it last.
void set_moment(SortedItem& item, int column, EventId event, const std::vector<Nanoseconds>& times,
                const QString& otherwise, Nanoseconds at) {
  const Nanoseconds time = event.valid() ? times[event.index()] : at;
  item.setText(column, event.valid() ? time_text(time) : otherwise);
  item.set_number(column, time);
}

// Of the step that is listed. `died`: of each storage of it, none = it outlives the step.
struct AliveStep {
  const Trace& trace;
  const std::vector<Nanoseconds>& times;  // on the device, of each event
  const std::vector<TensorId>& tensors;   // of each storage one, none where there is none
  std::function<EventId(StorageId)> died;
};

SortedItem* storage_row(const AliveStep& step, const report::Alive& alive,
                        const report::AliveStorage& at, const report::AliveUse& use) {
  const Trace& trace = step.trace;
  const std::size_t i = at.storage.index();
  const Selection name{Selection::Kind::storage, at.storage.value};
  const Selection link =
      at.saved.valid() ? Selection{Selection::Kind::saved, at.saved.value} : name;
  QString what = at.saved.valid()
                     ? QString::fromStdString(trace.string(trace.saved.site[at.saved.index()]))
                     : QString::fromStdString(gui::name_of(trace, name)).section(" (", 0, 0);
  if (at.holding == report::Holding::reloaded) what += AliveView::tr(" (copy that is back)");
  SortedItem* item = alive_row(alive, what, at.bytes, name_of(trace.storages.storage_class[i]),
                               link, use_text(use, step.times));
  const TensorId saved = at.saved.valid() ? trace.saved.tensor[at.saved.index()] : TensorId();
  const TensorId tensor = saved.valid() ? saved : step.tensors[i];
  item->setText(kShape, shape_text(trace, tensor));
  item->setText(kDtype, dtype_text(trace, tensor));
  if (const OpId maker = trace.storages.alloc_op[i]; maker.valid()) {
    const Selection op{Selection::Kind::op, maker.value};
    item->setText(kMaker, QString::fromStdString(gui::name_of(trace, op)));
    item->setToolTip(kMaker, item->text(kMaker));
  }
  set_moment(*item, kBorn, trace.storages.alloc_event[i], step.times,
             AliveView::tr("before the step"), -1);
  set_moment(*item, kDies, step.died(at.storage), step.times, AliveView::tr("outlives the step"),
             std::numeric_limits<Nanoseconds>::max());
  return item;
}

// A row each, and one for all that are left.
QList<QTreeWidgetItem*> largest_storages(const AliveStep& step, const report::Alive& alive,
                                         const report::BytesByUse& by_use) {
  QList<QTreeWidgetItem*> items;
  Bytes rest = 0;
  std::int64_t left = 0;
  for (std::size_t i = 0; i < alive.storages.size(); ++i) {
    const report::AliveStorage& at = alive.storages[i];
    if (items.size() < static_cast<qsizetype>(kMostStorages)) {
      items.append(storage_row(step, alive, at, by_use.rows[i]));
      continue;
    }
    rest += at.bytes;
    ++left;
  }
  if (left > 0) {
    SortedItem* smaller =
        alive_row(alive, AliveView::tr("%1 smaller ones").arg(left), rest, {}, {});
    smaller->set_sum();
    items.append(smaller);
  }
  return items;
}

QList<QTreeWidgetItem*> rows_by_use(const report::Alive& alive, const report::BytesByUse& by_use) {
  QList<QTreeWidgetItem*> items;
  for (const report::ByteUse use : {report::ByteUse::dead, report::ByteUse::saved,
                                    report::ByteUse::idle, report::ByteUse::needed}) {
    const auto count = std::count_if(by_use.rows.begin(), by_use.rows.end(),
                                     [&](const report::AliveUse& row) { return row.use == use; });
    items.append(group_row(alive, words_of_use(use), by_use.of(use), count));
  }
  return items;
}

QList<QTreeWidgetItem*> grouped(const Trace& trace, const report::Alive& alive, bool by_class) {
  QList<QTreeWidgetItem*> items;
  if (by_class) {
    for (const report::AliveClass& at : alive.classes) {
      items.append(group_row(alive, name_of(at.storage_class), at.bytes, at.storages));
    }
    return items;
  }
  for (const report::AliveLayer& at : alive.layers) {
    items.append(group_row(alive, QString::fromStdString(layer_words(trace, at.layer)), at.bytes,
                           at.storages, {Selection::Kind::layer, at.layer.value}));
  }
  return items;
}

}  // namespace

AliveView::AliveView(PlanDocument& document, ViewState& state, Explanations& explanations,
                     QWidget* parent)
    : QWidget(parent),
      document_(document),
      state_(state),
      explanations_(explanations),
      moment_(new QComboBox(this)),
      grouping_(new QComboBox(this)),
      title_(new QLabel(this)),
      use_(new QLabel(this)),
      rows_(new QTreeWidget),
      stack_(new EmptyStack(rows_, this)) {
  setObjectName(QStringLiteral("alive"));
  setAccessibleName(tr("What is alive"));
  moment_->addItems({tr("at the peak"), tr("at the cursor")});
  moment_->setAccessibleName(tr("Moment"));
  moment_->setToolTip(tr("P shows the peak; the cursor follows the pointer over the timeline"));
  grouping_->addItems({tr("by storage"), tr("by class"), tr("by layer"), tr("by use")});
  grouping_->setAccessibleName(tr("Grouping"));
  grouping_->setToolTip(
      tr("Bytes of each storage, or their sums by class, by layer or by what they are there for"));
  title_->setWordWrap(true);
  title_->setAccessibleName(tr("Moment and bytes"));
  use_->setObjectName(QStringLiteral("use"));
  use_->setWordWrap(true);
  use_->setAccessibleName(tr("What the bytes are there for"));
  use_->setToolTip(
      tr("dead: nothing in the step uses them any more, and they are freed later\n"
         "saved and idle, idle: the next use is later than it takes them to leave and return\n"
         "needed: in use, or used again sooner\n"
         "Times are those on the device, of a recorded step too"));
  rows_->setColumnCount(kAliveColumns);
  set_headers();
  rows_->headerItem()->setToolTip(kUse, use_->toolTip());
  rows_->headerItem()->setToolTip(kSize, tr("Requested bytes on the device"));
  rows_->headerItem()->setToolTip(kShare, tr("Of all that is alive there"));
  rows_->headerItem()->setToolTip(kBorn, tr("On the device"));
  rows_->headerItem()->setToolTip(
      kDies, tr("On the device: where it is freed, of what leaves where it is released"));
  // A click on a header sorts, the third one takes that back.
  rows_->header()->setSortIndicator(-1, Qt::DescendingOrder);
  rows_->header()->setSortIndicatorClearable(true);
  rows_->setSortingEnabled(true);
  // Behind the click: the header is in the middle of it.
  connect(
      rows_->header(), &QHeaderView::sortIndicatorChanged, this,
      [this](int column) {
        if (std::exchange(is_sorted_, column >= 0) && column < 0) refresh();
      },
      Qt::QueuedConnection);
  rows_->setRootIsDecorated(false);
  rows_->setUniformRowHeights(true);
  rows_->setAccessibleName(tr("What is alive"));
  rows_->setAccessibleDescription(
      tr("Return selects, F shows it in the timeline, Ctrl+C copies all rows as text"));
  const int em = fontMetrics().horizontalAdvance(QLatin1Char('m'));
  constexpr int kWidths[] = {13, 5, 5, 8, 19, 11, 7, 18, 8, 8};
  for (int i = 0; i < kAliveColumns; ++i) rows_->setColumnWidth(i, kWidths[i] * em);
  rows_->installEventFilter(this);
  auto* top = new QHBoxLayout;
  top->addWidget(moment_);
  top->addWidget(grouping_);
  top->addWidget(title_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(top);
  layout->addWidget(use_);
  layout->addWidget(stack_, 1);
  connect(moment_, &QComboBox::currentIndexChanged, this, &AliveView::refresh);
  connect(grouping_, &QComboBox::currentIndexChanged, this, &AliveView::refresh);
  connect(rows_, &QTreeWidget::itemDoubleClicked, this, &AliveView::select);
  on_row_menu(*rows_, std::bind_front(&AliveView::select, this),
              std::bind_front(&AliveView::menu_requested, this));
  connect(&explanations_, &Explanations::changed, this, &AliveView::refresh);
  connect(&state_, &ViewState::shown_changed, this, &AliveView::refresh);
  connect(&state_, &ViewState::cursor_changed, this, [this] {
    if (moment_->currentIndex() == 1) refresh();
  });
  refresh();
}

void AliveView::set_headers() {
  const bool by_storage = grouping_->currentIndex() == 0;
  rows_->setHeaderLabels({tr("What"), tr("Size"), tr("Share"),
                          by_storage ? tr("Class") : tr("Storages"), tr("Use"), tr("Shape"),
                          tr("Dtype"), tr("Made by"), tr("Born"), tr("Dies")});
  for (int column = kUse; column < kAliveColumns; ++column) {
    rows_->setColumnHidden(column, !by_storage);
  }
}

// One of each storage, of the step that was asked about last.
const std::vector<TensorId>& AliveView::tensors_of(const ExplainedPtr& explained,
                                                   const Trace& trace) {
  if (tensors_of_ != &trace || explained_.lock() != explained) tensors_ = first_tensors(trace);
  tensors_of_ = &trace;
  explained_ = explained;
  return tensors_;
}

void AliveView::show_peak() {
  moment_->setCurrentIndex(0);
}

void AliveView::show_cursor() {
  moment_->setCurrentIndex(1);
}

void AliveView::refresh() {
  if (late_.put_off()) return;
  rows_->clear();
  bytes_ = 0;
  title_->clear();
  use_->clear();
  const ExplainedPtr& x = explanations_.current();
  if (!x) {
    return stack_->set_reason(tr("No trace is open. Open one with Ctrl+O, or record a step."));
  }
  const bool recorded = document_.shows_recorded(state_.shown());
  const Trace& trace = recorded ? x->simulated->trace->trace : x->trace();
  const report::AliveIndex& index = recorded ? *x->recorded : *x->planned;
  const std::vector<Nanoseconds>& times = recorded ? trace.events.time : x->simulated->detail.time;
  const bool at_cursor = moment_->currentIndex() == 1;
  if (times.empty()) return stack_->set_reason(tr("The trace has no events."));
  if (at_cursor && !state_.cursor()) {
    return stack_->set_reason(
        tr("There is no cursor. Move the pointer over the timeline or the memory curve, or choose "
           "“at the peak”."));
  }
  stack_->set_reason({});
  const report::Alive alive =
      at_cursor ? index.at(report::event_at(times, *state_.cursor())) : index.at_peak();
  bytes_ = alive.bytes;
  const bool is_launch_time = recorded && trace.gpu.size() > 0;
  const std::vector<Nanoseconds>& on_device = recorded ? *x->device_times : times;
  const QString moment = time_text(times[alive.event.index()]);
  title_->setText(
      tr("%1 at %2 of the %3 step, %4")
          .arg(bytes_text(alive.bytes),
               is_launch_time ? tr("%1 of launch time (%2 on the device)")
                                    .arg(moment, time_text(on_device[alive.event.index()]))
                              : moment,
               recorded ? tr("recorded") : tr("planned"),
               QString::fromStdString(report::place(report::moment_at(trace, alive.event)))));
  // Those at hand are of the planned step.
  const bool has_uses = !recorded || !x->simulated->rows;
  const auto uses = has_uses ? x->uses : std::make_shared<const report::StorageUses>(trace);
  const report::BytesByUse by_use =
      report::bytes_by_use(trace, *uses, alive, on_device, on_device.back());
  std::string headline = report::use_headline(by_use);
  if (!at_cursor) {
    const std::string less =
        report::less_memory(x->simulated->resident(), x->simulated->result, ByteUnits::decimal,
                            recorded ? "" : "than without a plan");
    if (!less.empty()) headline += "; " + less;
  }
  use_->setText(QString::fromStdString(headline));
  const AliveStep step{trace, on_device, tensors_of(x, trace), [&](StorageId storage) {
                         if (recorded) return trace.storages.free_event[storage.index()];
                         const report::StorageStory story = x->stories[storage.index()];
                         return story.moves ? story.device_free : story.recorded_free;
                       }};
  fill(grouping_->currentIndex() == 0   ? largest_storages(step, alive, by_use)
       : grouping_->currentIndex() == 3 ? rows_by_use(alive, by_use)
                                        : grouped(trace, alive, grouping_->currentIndex() == 1));
}

void AliveView::fill(const QList<QTreeWidgetItem*>& items) {
  set_headers();
  // Sorted once, when all are there.
  rows_->setSortingEnabled(false);
  rows_->addTopLevelItems(items);
  rows_->setSortingEnabled(true);
}

void AliveView::select(QTreeWidgetItem* item) {
  const Selection link = SortedItem::link_of(item);
  if (link.kind == Selection::Kind::none) return;
  const ExplainedPtr& x = explanations_.current();
  const bool translate = x && document_.shows_recorded(state_.shown());
  state_.select(translate ? in_step(x->simulated->rows, link) : link);
}

void AliveView::copy() const {
  QGuiApplication::clipboard()->setText(table_text(title_->text(), *rows_));
}

bool AliveView::eventFilter(QObject* watched, QEvent* event) {
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
