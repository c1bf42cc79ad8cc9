// What lies on the device at one moment: at the peak, or at the cursor; by class, by layer or by
// storage, each with its shape, maker and lifetime; a click on a header sorts. Return or a double
// click selects, Ctrl+C copies all of it.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTreeWidget>
#include <QWidget>

#include "gui/model/explained.h"
#include "gui/model/plan_document.h"
#include "gui/model/view_state.h"
#include "gui/widgets/empty_stack.h"
#include "gui/widgets/late_refresh.h"

namespace stowage::gui {

class AliveView : public QWidget {
  Q_OBJECT
 public:
  AliveView(PlanDocument& document, ViewState& state, Explanations& explanations,
            QWidget* parent = nullptr);

  // P: at the peak again, wherever the cursor is.
  void show_peak();
  // At the cursor, wherever that goes.
  void show_cursor();
  [[nodiscard]] QComboBox& moment() { return *moment_; }
  [[nodiscard]] QComboBox& grouping() { return *grouping_; }
  [[nodiscard]] QTreeWidget& rows() { return *rows_; }
  [[nodiscard]] QString title() const { return title_->text(); }
  [[nodiscard]] Bytes bytes() const { return bytes_; }  // all of it
  [[nodiscard]] QString reason() const { return stack_->reason(); }
  // Title and all rows into the clipboard: a line each, columns with tabs between them.
  void copy() const;

 Q_SIGNALS:
  void peak_requested();
  // A right click on a row: what it speaks of is selected.
  void menu_requested(const QPoint& global);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void set_headers();
  void fill(const QList<QTreeWidgetItem*>& items);
  const std::vector<TensorId>& tensors_of(const ExplainedPtr& explained, const Trace& trace);
  void select(QTreeWidgetItem* item);

  PlanDocument& document_;
  ViewState& state_;
  Explanations& explanations_;
  QComboBox* moment_;
  QComboBox* grouping_;
  QLabel* title_;
  QLabel* use_;  // what the bytes are there for
  QTreeWidget* rows_;
  EmptyStack* stack_;
  Bytes bytes_ = 0;
  bool is_sorted_ = false;         // by a column
  std::vector<TensorId> tensors_;  // of each storage of `tensors_of_`, which is one of `explained_`
  const Trace* tensors_of_ = nullptr;
  std::weak_ptr<const Explained> explained_;
  LateRefresh late_{*this, [this] { refresh(); }};
};

}  // namespace stowage::gui
