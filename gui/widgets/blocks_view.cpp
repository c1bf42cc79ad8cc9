#include "gui/widgets/blocks_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>

#include "gui/model/name_search.h"
#include "gui/widgets/keys.h"
#include "gui/widgets/sorted_item.h"
#include "gui/widgets/storage_texts.h"
#include "gui/widgets/value_texts.h"
#include "report/alive.h"
#include "report/moment.h"

namespace stowage::gui {
namespace {

enum BlockColumn {
  kBlockAddress,
  kBlockSize,
  kBlockModule,
  kBlockWhat,
  kBlockMaker,
  kBlockShape,
  kBlockDtype,
  kBlockClass,
  kBlockTaken,
  kBlockPieces,
  kBlockColumns
};

Selection link_of(const MemoryBlock& block) {
  if (block.saved.valid()) return {Selection::Kind::saved, block.saved.value};
  return {Selection::Kind::storage, block.storage.value};
}

QString address_text(const MemoryBlock& block) {
  if (block.address < 0) return BlocksView::tr("outside");
  return QStringLiteral("0x%1").arg(block.address, 12, 16, QLatin1Char('0'));
}

QString what_text(const Trace& trace, const MemoryBlock& block) {
  if (!block.storage.valid()) return BlocksView::tr("workspace of a library");
  const QString name =
      block.saved.valid()
          ? QString::fromStdString(trace.string(trace.saved.site[block.saved.index()]))
          : QStringLiteral("%1 #%2")
                .arg(word_for(trace.storages.storage_class[block.storage.index()]))
                .arg(block.storage.value);
  return block.is_copy ? BlocksView::tr("%1 (copy that is back)").arg(name) : name;
}

QString module_text(const Trace& trace, const MemoryBlock& block) {
  if (!block.storage.valid()) return {};
  return QString::fromStdString(layer_words(trace, trace.storages.layer[block.storage.index()]));
}

QString maker_text(const Trace& trace, const MemoryBlock& block) {
  if (!block.storage.valid()) return {};
  const OpId maker = trace.storages.alloc_op[block.storage.index()];
  if (!maker.valid()) return BlocksView::tr("before the step");
  return QString::fromStdString(trace.string(trace.ops.name[maker.index()]));
}

TensorId tensor_of(const Trace& trace, const std::vector<TensorId>& tensors,
                   const MemoryBlock& block) {
  const TensorId saved = block.saved.valid() ? trace.saved.tensor[block.saved.index()] : TensorId();
  if (saved.valid() || !block.storage.valid()) return saved;
  return tensors[block.storage.index()];
}

QString described(const Trace& trace, const std::vector<TensorId>& tensors,
                  const MemoryBlock& block) {
  const TensorId tensor = tensor_of(trace, tensors, block);
  return QStringLiteral("%1\n%2 %3\n%4\n%5 %6\n%7")
      .arg(what_text(trace, block), address_text(block), exact_bytes_text(block.bytes),
           module_text(trace, block), shape_text(trace, tensor), dtype_text(trace, tensor),
           maker_text(trace, block));
}

SortedItem* block_row(const Trace& trace, const std::vector<TensorId>& tensors,
                      const MemoryBlock& block) {
  const TensorId tensor = tensor_of(trace, tensors, block);
  const QString of_class = block.storage.valid()
                               ? word_for(trace.storages.storage_class[block.storage.index()])
                               : word_for(StorageClass::workspace);
  auto* item =
      new SortedItem({address_text(block), bytes_text(block.bytes), module_text(trace, block),
                      what_text(trace, block), maker_text(trace, block), shape_text(trace, tensor),
                      dtype_text(trace, tensor), of_class, bytes_text(block.taken),
                      count_text(static_cast<std::int64_t>(block.pieces.size()))},
                     link_of(block));
  item->set_number(kBlockAddress,
                   block.address < 0 ? std::numeric_limits<Bytes>::max() : block.address);
  item->set_number(kBlockSize, block.bytes);
  item->set_number(kBlockTaken, block.taken);
  item->set_number(kBlockPieces, static_cast<std::int64_t>(block.pieces.size()));
  item->setToolTip(kBlockSize, exact_bytes_text(block.bytes));
  item->setToolTip(kBlockTaken, exact_bytes_text(block.taken));
  for (const int column : {kBlockWhat, kBlockModule, kBlockMaker}) {
    item->setToolTip(column, item->text(column));
  }
  return item;
}

QString words_of_source(BlockSource source) {
  switch (source) {
    case BlockSource::planned:
      return BlocksView::tr("planned memory");
    case BlockSource::caching:
      return BlocksView::tr("caching allocator's model");
    case BlockSource::first_fit:
      return BlocksView::tr("first fit: no allocator is known");
  }
  return {};
}

}  // namespace

BlocksView::BlocksView(PlanDocument& document, ViewState& state, QWidget* parent)
    : QWidget(parent),
      document_(document),
      state_(state),
      moment_(new QComboBox(this)),
      title_(new QLabel(this)),
      strip_(new BlockStrip(this)),
      rows_(new QTreeWidget),
      stack_(new EmptyStack(rows_, this)) {
  setObjectName(QStringLiteral("blocks"));
  setAccessibleName(tr("Blocks by address"));
  moment_->addItems({tr("at the peak"), tr("at the cursor")});
  moment_->setAccessibleName(tr("Moment of the blocks"));
  moment_->setToolTip(
      tr("When: at the memory peak, or where the pointer is over the timeline or the curve"));
  title_->setWordWrap(true);
  // Two lines at least and no more than the row has: the window may be small.
  title_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  title_->setMinimumHeight(2 * fontMetrics().lineSpacing());
  title_->setAccessibleName(tr("Moment and memory"));
  make_rows();
  auto* top = new QHBoxLayout;
  top->addWidget(moment_);
  top->addWidget(title_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(top);
  layout->addWidget(strip_, 2);
  layout->addWidget(stack_, 3);
  connect(moment_, &QComboBox::currentIndexChanged, this, &BlocksView::refresh);
  connect(rows_, &QTreeWidget::itemDoubleClicked, this,
          [this](QTreeWidgetItem* item) { select(SortedItem::link_of(item)); });
  connect(strip_, &BlockStrip::clicked, this,
          [this](int block) { select(link_of(blocks_[static_cast<std::size_t>(block)])); });
  on_row_menu(
      *rows_, [this](QTreeWidgetItem* item) { select(SortedItem::link_of(item)); },
      [this](const QPoint& global) { Q_EMIT menu_requested(global); });
  strip_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(strip_, &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    const int block = strip_->block_at(at);
    if (block < 0) return;
    select(link_of(blocks_[static_cast<std::size_t>(block)]));
    Q_EMIT menu_requested(strip_->mapToGlobal(at));
  });
  connect(&document_, &PlanDocument::opened, this, &BlocksView::refresh);
  connect(&document_, &PlanDocument::changed, this, &BlocksView::refresh);
  connect(&state_, &ViewState::shown_changed, this, &BlocksView::refresh);
  connect(&state_, &ViewState::selection_changed, this, &BlocksView::frame_selected);
  connect(&state_, &ViewState::cursor_changed, this, [this] {
    if (moment_->currentIndex() == 1) refresh();
  });
  refresh();
}

void BlocksView::make_rows() {
  rows_->setColumnCount(kBlockColumns);
  rows_->setHeaderLabels({tr("Address"), tr("Size"), tr("Module"), tr("What"), tr("Made by"),
                          tr("Shape"), tr("Dtype"), tr("Class"), tr("Takes"), tr("Pieces")});
  rows_->headerItem()->setToolTip(
      kBlockAddress, tr("Of planned memory from its begin; what lies outside of it has none"));
  rows_->headerItem()->setToolTip(kBlockSize, tr("Requested bytes"));
  rows_->headerItem()->setToolTip(kBlockTaken, tr("Of the memory: the block"));
  rows_->headerItem()->setToolTip(
      kBlockPieces, tr("Stretches of physical pages; the addresses of a block are one"));
  rows_->header()->setSortIndicator(kBlockAddress, Qt::AscendingOrder);
  rows_->setSortingEnabled(true);
  rows_->setRootIsDecorated(false);
  rows_->setUniformRowHeights(true);
  rows_->setAccessibleName(tr("Blocks"));
  rows_->setAccessibleDescription(
      tr("Return selects, F shows it in the timeline, Ctrl+C copies all rows as text"));
  const int em = fontMetrics().horizontalAdvance(QLatin1Char('m'));
  constexpr int kWidths[] = {11, 6, 8, 12, 11, 10, 6, 8, 6, 5};
  for (int i = 0; i < kBlockColumns; ++i) rows_->setColumnWidth(i, kWidths[i] * em);
  rows_->installEventFilter(this);
}

void BlocksView::refresh() {
  if (late_.put_off()) {
    // What nobody sees holds no replay that is gone.
    if (map_of_ != document_.current()) {
      map_of_ = nullptr;
      map_ = nullptr;
    }
    return;
  }
  rows_->clear();
  blocks_.clear();
  strip_->clear();
  title_->clear();
  const SimulatedPtr& current = document_.current();
  if (!current) {
    map_of_ = nullptr;
    map_ = nullptr;
    return stack_->set_reason(tr("No trace is open. Open one with Ctrl+O, or record a step."));
  }
  const bool recorded = document_.shows_recorded(state_.shown());
  make_map(current, recorded);
  if (!map_) return stack_->set_reason(tr("The blocks are being placed."));
  const Trace& trace = map_->trace();
  const std::vector<Nanoseconds>& times = recorded ? trace.events.time : current->detail.time;
  const bool at_cursor = moment_->currentIndex() == 1;
  if (at_cursor && !state_.cursor()) {
    return stack_->set_reason(
        tr("There is no cursor. Move the pointer over the timeline or the memory curve, or choose "
           "“at the peak”."));
  }
  const EventId peak = recorded ? current->resident().peak_event : current->result.peak_event;
  const EventId event = at_cursor ? report::event_at(times, *state_.cursor()) : peak;
  if (!event.valid()) return stack_->set_reason(tr("Nothing is on the device in this step."));
  stack_->set_reason({});
  blocks_ = map_->at(event);
  say_title(event, times[event.index()], recorded);
  strip_->show_blocks(trace, blocks_, map_->memory(), [this](const MemoryBlock& block) {
    return described(map_->trace(), tensors_, block);
  });
  fill();
  frame_selected();
}

void BlocksView::make_map(const SimulatedPtr& of, bool recorded) {
  if (map_of_ == of && map_recorded_ == recorded) return;
  map_of_ = of;
  map_recorded_ = recorded;
  map_ = nullptr;
  job_.run<MapPtr>(
      tr("Placing blocks"),
      [of, recorded](const JobContext&) -> MapPtr {
        return std::make_shared<const BlockMap>(of, recorded);
      },
      [this, of, recorded](MapPtr map) {
        if (map_of_ != of || map_recorded_ != recorded) return;
        map_ = std::move(map);
        tensors_ = first_tensors(map_->trace());
        refresh();
      });
}

void BlocksView::say_title(EventId event, Nanoseconds time, bool recorded) {
  Bytes bytes = 0;
  Bytes taken = 0;
  for (const MemoryBlock& block : blocks_) {
    bytes += block.bytes;
    taken += block.taken;
  }
  title_->setText(tr("%1 in %2 blocks at %3, %4 step; %5 of %6 taken (%7)")
                      .arg(bytes_text(bytes), count_text(static_cast<qlonglong>(blocks_.size())),
                           time_text(time), recorded ? tr("recorded") : tr("planned"),
                           bytes_text(taken), bytes_text(map_->memory()),
                           words_of_source(map_->source())));
  title_->setToolTip(
      QString::fromStdString(report::place(report::moment_at(map_->trace(), event))));
}

void BlocksView::fill() {
  QList<QTreeWidgetItem*> items;
  for (const MemoryBlock& block : blocks_) items << block_row(map_->trace(), tensors_, block);
  rows_->setColumnHidden(kBlockPieces, map_->source() != BlockSource::planned);
  // Sorted once, when all are there.
  rows_->setSortingEnabled(false);
  rows_->addTopLevelItems(items);
  rows_->setSortingEnabled(true);
}

void BlocksView::frame_selected() {
  if (!map_) return;
  Selection now = state_.selection();
  if (map_recorded_) now = in_recording(map_of_->rows, now);
  StorageId storage;
  const auto row = static_cast<std::size_t>(std::max(0, now.row));
  if (now.kind == Selection::Kind::storage) storage = StorageId(now.row);
  if (now.kind == Selection::Kind::saved && row < map_->trace().saved.size()) {
    storage = map_->trace().saved.storage[row];
  }
  strip_->select(storage);
  mark_row(storage);
}

void BlocksView::mark_row(StorageId storage) {
  for (int i = 0; storage.valid() && i < rows_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* item = rows_->topLevelItem(i);
    const Selection of = SortedItem::link_of(item);
    const bool is_it = (of.kind == Selection::Kind::storage && of.row == storage.value) ||
                       (of.kind == Selection::Kind::saved &&
                        map_->trace().saved.storage[static_cast<std::size_t>(of.row)] == storage);
    if (is_it) return rows_->setCurrentItem(item);
  }
  rows_->setCurrentItem(nullptr);
}

void BlocksView::select(const Selection& link) {
  if (link.kind == Selection::Kind::none || link.row < 0 || !map_) return;
  state_.select(map_recorded_ ? in_step(map_of_->rows, link) : link);
}

void BlocksView::copy() const {
  QGuiApplication::clipboard()->setText(table_text(title_->text(), *rows_));
}

bool BlocksView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == rows_ && event->type() == QEvent::KeyPress) {
    const std::optional<Key> key = key_of(*static_cast<QKeyEvent*>(event), KeyPlace::rows);
    if (key == Key::follow || key == Key::centre) select(SortedItem::link_of(rows_->currentItem()));
    if (key == Key::centre) state_.centre_selection();
    if (key == Key::peak) Q_EMIT peak_requested();
    if (key == Key::copy) copy();
    if (key) return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace stowage::gui
