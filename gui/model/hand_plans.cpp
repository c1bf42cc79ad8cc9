#include "gui/model/hand_plans.h"

#include <QFileInfo>
#include <algorithm>

namespace stowage::gui {
namespace {

// Of two states the decisions that were edited are the same, or the file that they were read from.
bool is_same_plan(const PlanState& a, const PlanState& b) {
  if (a.decisions || b.decisions) return a.decisions == b.decisions;
  return a.file == b.file;
}

}  // namespace

HandPlans::HandPlans(PlanDocument& document, QObject* parent)
    : QObject(parent), document_(document) {
  connect(&document_, &PlanDocument::opened, this, [this] {
    plans_.clear();
    count_ = 0;
  });
  connect(&document_, &PlanDocument::changed, this, &HandPlans::follow);
  connect(&document_.undo_stack(), &QUndoStack::cleanChanged, this, &HandPlans::take_file_names);
}

void HandPlans::follow() {
  const SimulatedPtr& now = document_.current();
  if (!now) return plans_.clear();
  const PlanState& state = *now->state;
  if (!state.decisions && state.file.empty()) return;
  auto at = std::find_if(plans_.begin(), plans_.end(),
                         [&](const HandPlan& each) { return is_same_plan(*each.state, state); });
  if (at == plans_.end()) {
    HandPlan made;
    ++count_;
    made.name = state.decisions
                    ? QStringLiteral("%1: %2").arg(count_).arg(document_.undo_stack().undoText())
                    : QFileInfo(QString::fromStdString(state.file)).fileName();
    plans_.push_back(std::move(made));
    if (plans_.size() > kMost) plans_.erase(plans_.begin());
    at = plans_.end() - 1;
  }
  at->state = now->state;
  at->machine = now->trace->trace.calibration;
  at->predicted = now->result;
  at->predicted.stalls.clear();
  take_file_names();
}

// What is saved is called so.
void HandPlans::take_file_names() {
  const SimulatedPtr& now = document_.current();
  if (now && document_.undo_stack().isClean() && !document_.plan_file().empty()) {
    for (HandPlan& each : plans_) {
      if (!is_same_plan(*each.state, *now->state)) continue;
      each.name = QFileInfo(QString::fromStdString(document_.plan_file())).fileName();
    }
  }
  Q_EMIT changed();
}

bool HandPlans::load(std::size_t plan) {
  if (plan >= plans_.size()) return false;
  return document_.return_to(plans_[plan].state, plans_[plan].name);
}

}  // namespace stowage::gui
