// Memory against time: starts and stops the search for plans of many budgets, shows what it found
// so far, and loads the plan of a point.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QWidget>

#include "gui/model/hand_plans.h"
#include "gui/model/pareto_search.h"
#include "gui/widgets/empty_stack.h"
#include "gui/widgets/pareto_plot.h"

namespace stowage::gui {

class ParetoView : public QWidget {
  Q_OBJECT
 public:
  explicit ParetoView(PlanDocument& document, QWidget* parent = nullptr);

  [[nodiscard]] ParetoSearch& search() { return search_; }
  [[nodiscard]] HandPlans& hand_plans() { return hand_plans_; }
  [[nodiscard]] ParetoPlot& plot() { return *plot_; }
  [[nodiscard]] QPushButton& start_button() { return *start_; }
  [[nodiscard]] QPushButton& cancel_button() { return *cancel_; }
  [[nodiscard]] QString status() const { return status_->text(); }
  [[nodiscard]] QString reason() const { return stack_->reason(); }

 Q_SIGNALS:
  void failed(const stowage::Error& error);

 private:
  void refresh();
  void add_hand_plans(ParetoPlot::Content& content) const;
  [[nodiscard]] QString status_text() const;

  PlanDocument& document_;
  ParetoSearch search_;
  HandPlans hand_plans_;
  QPushButton* start_;
  QPushButton* cancel_;
  QProgressBar* progress_;
  QLabel* status_;
  ParetoPlot* plot_;
  EmptyStack* stack_;
};

}  // namespace stowage::gui
