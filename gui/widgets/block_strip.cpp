#include "gui/widgets/block_strip.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <utility>

namespace stowage::gui {

BlockStrip::BlockStrip(QWidget* parent) : QWidget(parent), theme_(Theme::of(palette())) {
  setObjectName(QStringLiteral("block_strip"));
  setAccessibleName(tr("Device memory by address"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setMaximumHeight(7 * kRowHeight);
}

QSize BlockStrip::sizeHint() const {
  return {400, 3 * kRowHeight};
}

QSize BlockStrip::minimumSizeHint() const {
  return {60, 2 * kRowHeight};
}

void BlockStrip::show_blocks(const Trace& trace, std::vector<MemoryBlock> blocks, Bytes memory,
                             Describe describe) {
  blocks_ = std::move(blocks);
  describe_ = std::move(describe);
  memory_ = memory;
  classes_.clear();
  for (const MemoryBlock& block : blocks_) {
    classes_.push_back(block.storage.valid() ? trace.storages.storage_class[block.storage.index()]
                                             : StorageClass::workspace);
  }
  own_pixels();
}

void BlockStrip::clear() {
  blocks_.clear();
  classes_.clear();
  memory_ = 0;
  own_pixels();
}

void BlockStrip::select(StorageId storage) {
  if (storage == selected_) return;
  selected_ = storage;
  update();
}

// O(pieces + pixels).
void BlockStrip::own_pixels() {
  const auto pixels =
      static_cast<std::size_t>(std::max(1, width())) * static_cast<std::size_t>(rows());
  owner_.assign(pixels, -1);
  std::vector<Bytes> most(pixels, 0);
  const auto begin_of = [&](std::size_t pixel) {
    return static_cast<Bytes>(Wide{memory_} * static_cast<Bytes>(pixel) /
                              static_cast<Bytes>(pixels));
  };
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    for (const BlockPiece& piece : blocks_[b].pieces) {
      const Bytes end = piece.begin + piece.bytes;
      auto pixel =
          static_cast<std::size_t>(Wide{piece.begin} * static_cast<Bytes>(pixels) / memory_);
      for (; pixel < pixels && begin_of(pixel) < end; ++pixel) {
        const Bytes held =
            std::min(end, begin_of(pixel + 1)) - std::max(piece.begin, begin_of(pixel));
        if (held <= most[pixel]) continue;
        most[pixel] = held;
        owner_[pixel] = static_cast<std::int32_t>(b);
      }
    }
  }
  update();
}

int BlockStrip::block_at(const QPoint& at) const {
  const int row = at.y() / kRowHeight;
  if (!rect().contains(at) || row >= rows()) return -1;
  const auto pixel = static_cast<std::size_t>(row) * static_cast<std::size_t>(width()) +
                     static_cast<std::size_t>(at.x());
  return pixel < owner_.size() ? owner_[pixel] : -1;
}

QPoint BlockStrip::place_of(int block) const {
  const auto found = std::find(owner_.begin(), owner_.end(), block);
  if (found == owner_.end()) return {-1, -1};
  const auto pixel = static_cast<int>(found - owner_.begin());
  return {pixel % width(), pixel / width() * kRowHeight + kRowHeight / 2};
}

QColor BlockStrip::color_of(int block) const {
  return block < 0 ? theme_.background : theme_.storage(classes_[static_cast<std::size_t>(block)]);
}

void BlockStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.gutter);
  const int wide = std::max(1, width());
  for (int row = 0; row < rows(); ++row) {
    const int top = row * kRowHeight;
    const std::int32_t* owners = owner_.data() + static_cast<std::ptrdiff_t>(row) * wide;
    for (int x = 0; x < wide;) {
      int end = x + 1;
      while (end < wide && owners[end] == owners[x]) ++end;
      const std::int32_t block = owners[x];
      const QRect run(x, top, end - x, kRowHeight - 1);
      painter.fillRect(run, color_of(block));
      // Neighbours of one class are told apart by the line where the next one begins.
      if (block >= 0 && end - x > 2) painter.fillRect(x, top, 1, kRowHeight - 1, theme_.text);
      const bool is_selected = block >= 0 && selected_.valid() &&
                               blocks_[static_cast<std::size_t>(block)].storage == selected_;
      if (is_selected) {
        painter.fillRect(x, top, run.width(), 3, theme_.text);
        painter.fillRect(x, run.bottom() - 2, run.width(), 3, theme_.text);
      }
      x = end;
    }
  }
}

bool BlockStrip::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString text = describe(help->pos());
  if (text.isEmpty()) {
    QToolTip::hideText();
    event->ignore();
  } else {
    QToolTip::showText(help->globalPos(), text, this);
  }
  return true;
}

QString BlockStrip::describe(const QPoint& at) const {
  if (memory_ == 0) return {};
  const int block = block_at(at);
  return block < 0 ? tr("free") : describe_(blocks_[static_cast<std::size_t>(block)]);
}

void BlockStrip::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
    theme_ = Theme::of(palette());
    update();
  }
  QWidget::changeEvent(event);
}

void BlockStrip::mousePressEvent(QMouseEvent* event) {
  const int block = block_at(event->pos());
  if (event->button() == Qt::LeftButton && block >= 0) Q_EMIT clicked(block);
}

void BlockStrip::resizeEvent(QResizeEvent*) {
  own_pixels();
}

}  // namespace stowage::gui
