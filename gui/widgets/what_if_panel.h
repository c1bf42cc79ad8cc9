// What if: another budget, another card, another machine (MachinePanel). Each change is replayed at
// once. Budgets are edits of the plan and can be taken back.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QWidget>

#include "gui/model/plan_document.h"
#include "gui/widgets/budget_field.h"
#include "gui/widgets/machine_panel.h"

namespace stowage::gui {

class WhatIfPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WhatIfPanel(PlanDocument& document, QWidget* parent = nullptr);

  [[nodiscard]] BudgetField& budget() { return *budget_; }
  [[nodiscard]] QLineEdit& host_budget() { return *host_; }
  [[nodiscard]] CounterField& counter() { return *counter_; }
  [[nodiscard]] QComboBox& card() { return *card_; }
  [[nodiscard]] QPushButton& plan_button() { return *plan_; }
  [[nodiscard]] MachinePanel& machine() { return *machine_; }
  [[nodiscard]] QString problem() const { return problem_->text(); }

 Q_SIGNALS:
  void find_plan_requested();  // for the budget that is set

 private:
  QWidget* make_budgets();
  void take_host_budget();
  void take_card();
  void refresh();
  void say(const QString& what, const Error& error);
  void forget_problem();

  PlanDocument& document_;
  BudgetField* budget_;
  QLineEdit* host_;
  CounterField* counter_;
  QComboBox* card_;
  QPushButton* plan_;
  MachinePanel* machine_;
  QLabel* problem_;
};

}  // namespace stowage::gui
