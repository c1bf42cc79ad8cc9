// Everything known of the selection, or without one of the step, in two columns. Return or a double
// click on a row goes to what that row speaks of; Ctrl+C copies all of it as text.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>

#include "gui/model/details.h"
#include "gui/model/keep_instead.h"
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
  // Of a stall and of a copy: what it is about stays on the device. Hidden for everything else.
  [[nodiscard]] QPushButton& keep_button() { return *keep_; }
  [[nodiscard]] QString reason() const { return stack_->reason(); }
  void copy() const;

 Q_SIGNALS:
  void peak_requested();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void follow_link(QTreeWidgetItem* item);
  void offer_to_keep();
  void keep_it();

  PlanDocument& document_;
  ViewState& state_;
  Explanations& explanations_;
  Details details_;
  KeepInstead keeps_;
  QLabel* title_;
  QPushButton* keep_;
  QTreeWidget* rows_;
  EmptyStack* stack_;
};

}  // namespace stowage::gui
