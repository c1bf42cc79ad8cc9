// What if: another budget, another card, another machine (MachinePanel). Each change is replayed in
// the background at once, and what is typed counts when the field is left or Return is pressed.
// Budgets are edits of the plan that undo takes back; the machine is no part of a plan. A value
// that is none changes nothing and is explained above the fields until the next good one. Shows the
// document and holds nothing of its own.
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
  // The document must outlive it.
  explicit WhatIfPanel(PlanDocument& document, QWidget* parent = nullptr);
  ~WhatIfPanel() override;

  // The controls, for tests.
  [[nodiscard]] BudgetField& budget() { return *budget_; }
  [[nodiscard]] QLineEdit& host_budget() { return *host_; }
  [[nodiscard]] CounterField& counter() { return *counter_; }
  [[nodiscard]] PlacementField& placement() { return *placement_; }
  [[nodiscard]] QComboBox& card() { return *card_; }
  [[nodiscard]] MachinePanel& machine() { return *machine_; }
  // What was wrong with the last value, with what to do; empty = nothing.
  [[nodiscard]] QString problem() const { return problem_->text(); }

 Q_SIGNALS:
  // For the budgets of the document, which hold what is in the fields by then. Not when the budget
  // that was typed is none.
  void find_plan_requested();

 private:
  QWidget* make_budgets();
  void take_host_budget();
  // A card's size becomes a budget on reserved bytes, less what the CUDA context takes
  // (planner::reserved_to_fit); of a recording on a CPU one on active bytes.
  void take_card();
  struct CardBudget {
    Bytes bytes = 0;
    simulator::PeakKind on = simulator::PeakKind::reserved;
  };
  // Of the card that is chosen and the trace that is open.
  [[nodiscard]] Result<CardBudget> budget_of_card() const;
  void show_card();
  void refresh();
  void say(const QString& what, const Error& error);
  void forget_problem();
  void show_pins();

  PlanDocument& document_;
  BudgetField* budget_;
  QLineEdit* host_;
  CounterField* counter_;
  PlacementField* placement_;
  QComboBox* card_;
  QPushButton* plan_;
  QLabel* pins_;
  QPushButton* unpin_;
  MachinePanel* machine_;
  QLabel* problem_;
};

}  // namespace stowage::gui
