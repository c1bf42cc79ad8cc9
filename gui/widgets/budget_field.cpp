#include "gui/widgets/budget_field.h"

#include "gui/widgets/value_texts.h"
#include "planner/budget.h"
#include "traces/size_text.h"

namespace stowage::gui {

using simulator::PeakKind;

QString budget_text(const std::optional<Bytes>& bytes, const std::string& written) {
  if (!bytes) return {};
  return written.empty() ? bytes_text(*bytes) : QString::fromStdString(written);
}

BudgetField::BudgetField(PlanDocument& document, QWidget* parent)
    : QLineEdit(parent), document_(document) {
  setAccessibleName(tr("Budget of the device"));
  setToolTip(
      tr("Most memory that the step may take on the device: 36GB (1000-based), 24GiB (1024-based), "
         "or 60% of the peak without a plan; empty = no budget"));
  setPlaceholderText(tr("none, e.g. 36GB or 60%"));
  setClearButtonEnabled(true);
  connect(this, &QLineEdit::editingFinished, this, &BudgetField::take);
  connect(&document_, &PlanDocument::changed, this, &BudgetField::refresh);
  connect(&document_, &PlanDocument::edited, this, &BudgetField::refresh);
  refresh();
}

bool BudgetField::take() {
  if (!document_.trace()) return false;
  const simulator::PlanBudget& now = document_.state()->plan.budget;
  setModified(false);
  const QString typed = text().trimmed();
  // What is shown is rounded: unchanged text is no other budget.
  if (typed != budget_text(now.device, now.device_text)) {
    std::optional<Bytes> bytes;
    if (!typed.isEmpty()) {
      const simulator::PlacementMode placement = document_.state()->plan.placement;
      const Result<Bytes> size = parse_size(
          typed.toStdString(), planner::peak_of(document_.trace()->at_once(placement), now.on));
      if (!size) {
        Q_EMIT refused(size.error());
        return false;
      }
      bytes = *size;
    }
    document_.set_budget(bytes, now.on, -1, typed.toStdString());
  }
  Q_EMIT taken();
  return true;
}

void BudgetField::refresh() {
  setEnabled(document_.trace() != nullptr);
  if (!document_.trace()) return clear();
  // What somebody is typing stays.
  if (hasFocus() && isModified()) return;
  const simulator::PlanBudget& budget = document_.state()->plan.budget;
  const QString shown = budget_text(budget.device, budget.device_text);
  if (shown != text()) setText(shown);
}

PlacementField::PlacementField(PlanDocument& document, QWidget* parent)
    : QComboBox(parent), document_(document) {
  setAccessibleName(tr("Memory that the plan runs in"));
  setToolTip(tr(
      "planned memory: pages taken once, in which each allocation has its place; what is reserved "
      "is then hardly more than what is alive. caching allocator: PyTorch's own"));
  addItem(tr("planned memory"), static_cast<int>(simulator::PlacementMode::planned));
  addItem(tr("caching allocator"), static_cast<int>(simulator::PlacementMode::caching));
  connect(this, &QComboBox::activated, this, [this] {
    document_.set_placement(static_cast<simulator::PlacementMode>(currentData().toInt()));
  });
  connect(&document_, &PlanDocument::changed, this, &PlacementField::refresh);
  connect(&document_, &PlanDocument::edited, this, &PlacementField::refresh);
  refresh();
}

void PlacementField::refresh() {
  setEnabled(document_.trace() != nullptr);
  if (!document_.trace()) return;
  setCurrentIndex(findData(static_cast<int>(document_.state()->plan.placement)));
}

CounterField::CounterField(PlanDocument& document, QWidget* parent)
    : QComboBox(parent), document_(document) {
  setAccessibleName(tr("Counter of the budget"));
  setToolTip(
      tr("Bytes that the budget is about. requested: the sizes asked for. active: what is handed "
         "out, rounded as its memory does. reserved: taken from the driver"));
  for (const PeakKind kind : {PeakKind::requested, PeakKind::active, PeakKind::reserved}) {
    addItem(tr("%1 bytes").arg(QLatin1String(simulator::name_of(kind))), static_cast<int>(kind));
  }
  setCurrentIndex(findData(static_cast<int>(PeakKind::active)));
  connect(this, &QComboBox::activated, this, [this] {
    if (!document_.trace()) return;
    document_.set_budget(document_.state()->plan.budget.device,
                         static_cast<PeakKind>(currentData().toInt()));
  });
  connect(&document_, &PlanDocument::changed, this, &CounterField::refresh);
  connect(&document_, &PlanDocument::edited, this, &CounterField::refresh);
  refresh();
}

void CounterField::refresh() {
  setEnabled(document_.trace() != nullptr);
  if (!document_.trace()) return;
  setCurrentIndex(findData(static_cast<int>(document_.state()->plan.budget.on)));
}

}  // namespace stowage::gui
