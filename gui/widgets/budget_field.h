// The plan's budget on the device, as a field, with choices of its counter and of the memory that
// the plan runs in. The document holds the one value: fields show it wherever they stand, and what
// is typed or chosen is an edit of the plan that can be taken back.
#pragma once

#include <QComboBox>
#include <QLineEdit>

#include "gui/model/plan_document.h"

namespace stowage::gui {

class BudgetField : public QLineEdit {
  Q_OBJECT
 public:
  explicit BudgetField(PlanDocument& document, QWidget* parent = nullptr);

  // What is typed becomes the plan's budget, as by Return or by leaving the field; empty = no
  // budget. False: it is no size (and `refused` said so), or nothing is open.
  bool take();

 Q_SIGNALS:
  void taken();
  void refused(const stowage::Error& error);

 private:
  void refresh();

  PlanDocument& document_;
};

class PlacementField : public QComboBox {
  Q_OBJECT
 public:
  explicit PlacementField(PlanDocument& document, QWidget* parent = nullptr);

 private:
  void refresh();

  PlanDocument& document_;
};

class CounterField : public QComboBox {
  Q_OBJECT
 public:
  explicit CounterField(PlanDocument& document, QWidget* parent = nullptr);

 private:
  void refresh();

  PlanDocument& document_;
};

// As a field shows a budget: as it was written, else rounded; empty = none.
[[nodiscard]] QString budget_text(const std::optional<Bytes>& bytes, const std::string& written);

}  // namespace stowage::gui
