// Everything known of the selection, or without one of the step, in two columns. Return or a double
// click on a row goes to what that row speaks of; Ctrl+C copies all of it as text.
#pragma once

#include <QLabel>
#include <QTreeWidget>
#include <QWidget>

#include "gui/model/details.h"
#include "gui/model/plan_document.h"
#include "gui/widgets/empty_stack.h"

namespace stowage::gui {

class DetailsView : public QWidget {
  Q_OBJECT
 public:
  DetailsView(PlanDocument& document, ViewState& state, Explanations& explanations,
              QWidget* parent = nullptr);

  [[nodiscard]] const Details& details() const { return details_; }
  [[nodiscard]] QTreeWidget& rows() { return *rows_; }
  [[nodiscard]] QString reason() const { return stack_->reason(); }
  void copy() const;

 Q_SIGNALS:
  void peak_requested();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void follow_link(QTreeWidgetItem* item);

  PlanDocument& document_;
  ViewState& state_;
  Explanations& explanations_;
  Details details_;
  QLabel* title_;
  QTreeWidget* rows_;
  EmptyStack* stack_;
};

}  // namespace stowage::gui
