// The plans that somebody made by hand or opened, with what they were replayed to: to be seen
// beside those that a search finds.
#pragma once

#include <QObject>
#include <QString>
#include <vector>

#include "gui/model/plan_document.h"

namespace stowage::gui {

struct HandPlan {
  QString name;  // "2: Offload 3 saved tensors"; once it is in a file that file's name
  PlanStatePtr state;
  Calibration machine;                // that it was replayed on
  simulator::ReplayResult predicted;  // without its stalls
};

// Follows a document. Main thread only.
class HandPlans : public QObject {
  Q_OBJECT
 public:
  explicit HandPlans(PlanDocument& document, QObject* parent = nullptr);

  // Oldest first. The last kMost of the file that is open; each as it was replayed last, so a plan
  // that another budget or machine is tried with is one plan.
  [[nodiscard]] const std::vector<HandPlan>& plans() const { return plans_; }
  // As one undo step; false without that plan, and when it is the one that is shown.
  bool load(std::size_t plan);

  static constexpr std::size_t kMost = 20;

 Q_SIGNALS:
  void changed();

 private:
  void follow();
  void take_file_names();

  PlanDocument& document_;
  std::vector<HandPlan> plans_;
  int count_ = 0;  // of all that there were of this file
};

}  // namespace stowage::gui
