// What the device worked on within the range that is measured, or in the whole step: by op or by
// kernel, how many and how long, and their sum. A click on a header sorts, Return or a double click
// selects the longest of a row, Ctrl+C copies all of it.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTreeWidget>
#include <QWidget>
#include <optional>

#include "gui/model/device_work.h"
#include "gui/model/plan_document.h"
#include "gui/model/view_state.h"
#include "gui/widgets/empty_stack.h"
#include "gui/widgets/late_refresh.h"

namespace stowage::gui {

class RangeView : public QWidget {
  Q_OBJECT
 public:
  RangeView(PlanDocument& document, ViewState& state, QWidget* parent = nullptr);

  [[nodiscard]] QComboBox& grouping() { return *grouping_; }
  [[nodiscard]] QTreeWidget& rows() { return *rows_; }
  [[nodiscard]] QString title() const { return title_->text(); }
  [[nodiscard]] QString reason() const { return stack_->reason(); }
  [[nodiscard]] const WorkTable& table() const { return table_; }

 Q_SIGNALS:
  void peak_requested();
  // A right click on a row: what it speaks of is selected.
  void menu_requested(const QPoint& global);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void fill();
  void select(QTreeWidgetItem* item);
  void copy() const;

  PlanDocument& document_;
  ViewState& state_;
  QComboBox* grouping_;
  QLabel* title_;
  QTreeWidget* rows_;
  EmptyStack* stack_;
  std::optional<DeviceWork> work_;  // of `work_of_`
  StepPicturePtr work_of_;
  WorkTable table_;
  LateRefresh late_{*this, [this] { refresh(); }};
};

}  // namespace stowage::gui
