// The blocks of device memory at one moment, one by one by address: a strip of the memory, and a
// table of what each block is, which module it belongs to and which op made it. A click on a header
// sorts; Return, a double click, and a click into the strip select; Ctrl+C copies all of it.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTreeWidget>
#include <QWidget>
#include <memory>

#include "gui/model/block_map.h"
#include "gui/model/job_runner.h"
#include "gui/model/plan_document.h"
#include "gui/model/view_state.h"
#include "gui/widgets/block_strip.h"
#include "gui/widgets/empty_stack.h"
#include "gui/widgets/late_refresh.h"

namespace stowage::gui {

class BlocksView : public QWidget {
  Q_OBJECT
 public:
  BlocksView(PlanDocument& document, ViewState& state, QWidget* parent = nullptr);

  [[nodiscard]] QComboBox& moment() { return *moment_; }
  [[nodiscard]] QTreeWidget& rows() { return *rows_; }
  [[nodiscard]] BlockStrip& strip() { return *strip_; }
  [[nodiscard]] QString title() const { return title_->text(); }
  [[nodiscard]] QString reason() const { return stack_->reason(); }
  [[nodiscard]] const std::vector<MemoryBlock>& blocks() const { return blocks_; }
  [[nodiscard]] JobRunner& job() { return job_; }
  // Its rows take what there is: no window grows for its words.
  [[nodiscard]] bool hasHeightForWidth() const override { return false; }

 Q_SIGNALS:
  void peak_requested();
  // A right click on a row or into the strip: that block is selected.
  void menu_requested(const QPoint& global);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  using MapPtr = std::shared_ptr<const BlockMap>;
  void make_rows();
  void refresh();
  void make_map(const SimulatedPtr& of, bool recorded);
  void say_title(EventId event, Nanoseconds time, bool recorded);
  void fill();
  void frame_selected();
  void mark_row(StorageId storage);  // none: no row
  void select(const Selection& link);
  void copy() const;

  PlanDocument& document_;
  ViewState& state_;
  QComboBox* moment_;
  QLabel* title_;
  BlockStrip* strip_;
  QTreeWidget* rows_;
  EmptyStack* stack_;
  SimulatedPtr map_of_;
  bool map_recorded_ = false;
  MapPtr map_;                     // null: it is being made
  std::vector<TensorId> tensors_;  // of each storage of the map's trace
  std::vector<MemoryBlock> blocks_;
  LateRefresh late_{*this, [this] { refresh(); }};
  JobRunner job_{this};  // last: it waits for its thread ahead of everything else's end
};

}  // namespace stowage::gui
