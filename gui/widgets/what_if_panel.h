// What if: another budget, another card, another link. Calibration values are those of
// `stowage simulate --set`; one that is not the recorded one is marked "assumed". Each change is
// replayed at once. Budgets are edits of the plan and can be taken back; the machine is not part of
// the plan, it has Reset.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "gui/model/plan_document.h"
#include "simulator/calibration_settings.h"

namespace stowage::gui {

class WhatIfPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WhatIfPanel(PlanDocument& document, QWidget* parent = nullptr);

  [[nodiscard]] QLineEdit& budget() { return *budget_; }
  [[nodiscard]] QLineEdit& host_budget() { return *host_; }
  [[nodiscard]] QComboBox& counter() { return *counter_; }
  [[nodiscard]] QComboBox& card() { return *card_; }
  [[nodiscard]] QComboBox& link() { return *link_; }
  // Of a setting: "link.h2d_gbps".
  [[nodiscard]] QDoubleSpinBox* field(const QString& name) const;
  [[nodiscard]] bool is_marked(const QString& name) const;
  [[nodiscard]] QPushButton& reset_button() { return *reset_; }
  [[nodiscard]] QString problem() const { return problem_->text(); }

 Q_SIGNALS:
  void find_plan_requested();  // for the budget that is set

 private:
  struct Row {
    const simulator::CalibrationSetting* setting;
    QDoubleSpinBox* field;
    QLabel* mark;
    QToolButton* back;
  };
  QWidget* make_budgets();
  QWidget* make_machine();
  void take_budget();
  void take_host_budget();
  void take_card();
  void take_link();
  void take_settings();
  void reset_machine();
  void refresh();

  PlanDocument& document_;
  QLineEdit* budget_;
  QLineEdit* host_;
  QComboBox* counter_;
  QComboBox* card_;
  QComboBox* link_;
  QPushButton* plan_;
  QPushButton* reset_;
  QLabel* machine_;
  QLabel* problem_;
  std::vector<Row> rows_;
  Calibration recorded_;
};

}  // namespace stowage::gui
