// Device memory as a strip that is folded into rows: from left to right and from the top down by
// address, each pixel in the class of the block that has the most of it. Free memory is empty.
#pragma once

#include <QImage>
#include <QWidget>
#include <functional>
#include <vector>

#include "gui/model/block_map.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

class BlockStrip : public QWidget {
  Q_OBJECT
 public:
  explicit BlockStrip(QWidget* parent = nullptr);

  using Describe = std::function<QString(const MemoryBlock&)>;  // for its tool tip
  // The trace is looked up only here.
  void show_blocks(const Trace& trace, std::vector<MemoryBlock> blocks, Bytes memory,
                   Describe describe);
  void clear();
  // The blocks of this storage have a frame; none: nothing has.
  void select(StorageId storage);

  // Row of the blocks; -1: free memory, or none of it.
  [[nodiscard]] int block_at(const QPoint& at) const;
  // Text of the tool tip there; empty: there is no memory.
  [[nodiscard]] QString describe(const QPoint& at) const;
  // Where the first pixel of a block is; (-1, -1): it has none.
  [[nodiscard]] QPoint place_of(int block) const;
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void clicked(int block);

 protected:
  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  static constexpr int kRowHeight = 12;
  [[nodiscard]] int rows() const { return std::max(1, height() / kRowHeight); }
  void own_pixels();
  [[nodiscard]] QColor color_of(int block) const;

  std::vector<MemoryBlock> blocks_;
  std::vector<StorageClass> classes_;  // by block
  Describe describe_;
  Bytes memory_ = 0;
  StorageId selected_;
  std::vector<std::int32_t> owner_;  // by pixel of the rows, one behind the other; -1: free
  Theme theme_;
};

}  // namespace stowage::gui
