#include "gui/widgets/what_if_panel.h"

#include <QFormLayout>
#include <QGroupBox>
#include <QScrollArea>
#include <QVBoxLayout>

#include "gui/widgets/last_words.h"
#include "planner/budget.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

// What a card is called, and the memory that its driver tells of: GiB where the name says GB.
struct Card {
  const char* name;
  const char* memory;
};
constexpr Card kCards[] = {{"16 GB", "16GiB"}, {"24 GB", "24GiB"},   {"32 GB", "32GiB"},
                           {"40 GB", "40GiB"}, {"48 GB", "48GiB"},   {"80 GB", "80GiB"},
                           {"96 GB", "96GiB"}, {"141 GB", "140GiB"}, {"192 GB", "179GiB"}};

}  // namespace

WhatIfPanel::WhatIfPanel(PlanDocument& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      budget_(new BudgetField(document)),
      host_(new QLineEdit),
      counter_(new CounterField(document)),
      placement_(new PlacementField(document)),
      card_(new QComboBox),
      plan_(new QPushButton(tr("Find a plan for i&t"))),
      pins_(new QLabel),
      unpin_(new QPushButton(tr("&Unpin all"))),
      machine_(new MachinePanel(document)),
      problem_(new QLabel) {
  setObjectName(QStringLiteral("what_if"));
  setAccessibleName(tr("What if"));
  problem_->setWordWrap(true);
  problem_->hide();
  problem_->setAccessibleName(tr("What is wrong with the last value"));
  auto* inside = new QWidget;
  auto* column = new QVBoxLayout(inside);
  column->addWidget(problem_);
  column->addWidget(make_budgets());
  column->addWidget(machine_);
  column->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setWidget(inside);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);

  connect(budget_, &BudgetField::refused, this,
          [this](const Error& error) { say(tr("Budget"), error); });
  connect(machine_, &MachinePanel::refused, this,
          [this](const Error& error) { say(tr("Machine"), error); });
  connect(budget_, &BudgetField::taken, this, &WhatIfPanel::forget_problem);
  connect(machine_, &MachinePanel::taken, this, &WhatIfPanel::forget_problem);
  connect(&document_, &PlanDocument::opened, this, &WhatIfPanel::forget_problem);
  connect(&document_, &PlanDocument::changed, this, &WhatIfPanel::refresh);
  connect(&document_, &PlanDocument::edited, this, &WhatIfPanel::refresh);
  connect(&document_, &PlanDocument::pinned, this, &WhatIfPanel::show_pins);
  connect(&document_, &PlanDocument::opened, this, &WhatIfPanel::show_pins);
  refresh();
}

QWidget* WhatIfPanel::make_budgets() {
  auto* group = new QGroupBox(tr("Memory"));
  auto* form = new QFormLayout(group);
  form->setRowWrapPolicy(QFormLayout::WrapLongRows);
  card_->setObjectName(QStringLiteral("card"));
  card_->setAccessibleName(tr("Size of the card"));
  card_->setToolTip(
      tr("The budget with which the step runs on a card of this size: what the CUDA context takes "
         "is off"));
  card_->addItem(tr("choose a card"));
  for (const Card& card : kCards) {
    card_->addItem(tr("%1 (%2)").arg(QLatin1String(card.name), QLatin1String(card.memory)),
                   QLatin1String(card.memory));
  }
  host_->setAccessibleName(tr("Budget of the host"));
  host_->setToolTip(
      tr("Most pinned memory that the plan may take on the host: 64GB (1000-based) or 64GiB; "
         "empty = no budget"));
  host_->setPlaceholderText(tr("none, e.g. 64GiB"));
  host_->setClearButtonEnabled(true);
  plan_->setToolTip(tr("Searches the fastest plan within the budgets"));
  form->addRow(tr("Bud&get"), budget_);
  form->addRow(tr("of &kind"), counter_);
  form->addRow(tr("&in"), placement_);
  form->addRow(tr("to fit &a card of"), card_);
  form->addRow(tr("Host &memory"), host_);
  form->addRow(plan_);
  form->addRow(pins_, unpin_);
  pins_->setObjectName(QStringLiteral("pins"));
  pins_->setAccessibleName(tr("Pinned decisions"));
  unpin_->setObjectName(QStringLiteral("unpin_all"));
  unpin_->setToolTip(tr("A search decides about everything again"));
  connect(unpin_, &QPushButton::clicked, this, [this] { document_.set_pinned_rows({}); });
  show_pins();
  connect(card_, &QComboBox::activated, this, &WhatIfPanel::take_card);
  connect(host_, &QLineEdit::editingFinished, this, &WhatIfPanel::take_host_budget);
  connect(plan_, &QPushButton::clicked, this, [this] {
    if (budget_->take()) Q_EMIT find_plan_requested();
  });
  return group;
}

WhatIfPanel::~WhatIfPanel() {
  take_last_words(*this);
}

void WhatIfPanel::say(const QString& what, const Error& error) {
  problem_->setText(tr("⚠ %1: %2").arg(what, QString::fromStdString(error.text())));
  problem_->show();
}

void WhatIfPanel::forget_problem() {
  problem_->clear();
  problem_->hide();
}

void WhatIfPanel::take_host_budget() {
  if (!document_.trace()) return;
  forget_problem();
  const simulator::PlanBudget& now = document_.state()->plan.budget;
  host_->setModified(false);
  const QString text = host_->text().trimmed();
  if (text == budget_text(now.host, now.host_text)) return;
  if (text.isEmpty()) {
    document_.set_host_budget(std::nullopt);
    return;
  }
  const auto bytes = parse_size(text.toStdString());
  if (!bytes) return say(tr("Host memory"), bytes.error());
  document_.set_host_budget(*bytes);
}

void WhatIfPanel::take_card() {
  if (card_->currentIndex() <= 0 || !document_.trace()) return;
  forget_problem();
  const auto budget = budget_of_card();
  if (budget) {
    document_.set_budget(budget->bytes, budget->on);
    return;
  }
  card_->setCurrentIndex(0);
  say(tr("Card"), budget.error());
}

Result<WhatIfPanel::CardBudget> WhatIfPanel::budget_of_card() const {
  const TraceData& trace = *document_.trace();
  const Bytes bytes = parse_size(card_->currentData().toString().toStdString()).value();
  const auto budget = planner::reserved_to_fit(trace.trace, bytes);
  if (budget) return CardBudget{*budget, simulator::PeakKind::reserved};
  // A recording on a CPU has no reserved bytes: the card's size is then the budget itself.
  if (trace.resident_cached.peak_reserved < 0)
    return CardBudget{bytes, simulator::PeakKind::active};
  return budget.error();
}

// The card goes once the budget is another one.
void WhatIfPanel::show_card() {
  if (card_->currentIndex() <= 0) return;
  const auto of_card = document_.trace() ? budget_of_card() : Error{};
  const bool is_it = of_card && document_.state()->plan.budget.device == of_card->bytes &&
                     document_.state()->plan.budget.on == of_card->on;
  if (!is_it) card_->setCurrentIndex(0);
}

void WhatIfPanel::show_pins() {
  const std::size_t count = document_.pinned_rows().size();
  pins_->setText(count == 1 ? tr("1 decision is pinned and stays")
                            : tr("%1 decisions are pinned and stay").arg(count));
  pins_->setVisible(count > 0);
  unpin_->setVisible(count > 0);
}

void WhatIfPanel::refresh() {
  const bool open = document_.trace() != nullptr;
  for (QWidget* part : std::initializer_list<QWidget*>{host_, card_, plan_}) {
    part->setEnabled(open);
  }
  show_card();
  if (!open) return host_->clear();
  // What somebody is typing stays.
  if (host_->hasFocus() && host_->isModified()) return;
  const simulator::PlanBudget& budget = document_.state()->plan.budget;
  host_->setText(budget_text(budget.host, budget.host_text));
}

}  // namespace stowage::gui
