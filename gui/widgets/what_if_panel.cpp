#include "gui/widgets/what_if_panel.h"

#include <QFormLayout>
#include <QGridLayout>
#include <QGroupBox>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/widgets/words.h"
#include "planner/planner.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

// Rates one way as they are measured on such links, not those of the data sheet.
struct KnownLink {
  const char* name;
  double gbps;
};
constexpr KnownLink kLinks[] = {
    {"PCIe 3.0 x16 (about 12 GB/s)", 12}, {"PCIe 4.0 x16 (about 25 GB/s)", 25},
    {"PCIe 5.0 x16 (about 55 GB/s)", 55}, {"PCIe 6.0 x16 (about 110 GB/s)", 110},
    {"NVLink-C2C (about 350 GB/s)", 350},
};
constexpr const char* kCards[] = {"16GB", "24GB", "32GB",  "40GB", "48GB",
                                  "80GB", "96GB", "141GB", "192GB"};

QString size_text(const std::optional<Bytes>& bytes, const std::string& written) {
  if (!bytes) return {};
  return written.empty() ? bytes_text(*bytes) : QString::fromStdString(written);
}

}  // namespace

WhatIfPanel::WhatIfPanel(PlanDocument& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      budget_(new QLineEdit),
      host_(new QLineEdit),
      counter_(new QComboBox),
      card_(new QComboBox),
      link_(new QComboBox),
      plan_(new QPushButton(tr("&Find a plan for it"))),
      reset_(new QPushButton(tr("&Reset to the recorded machine"))),
      machine_(new QLabel),
      problem_(new QLabel) {
  setObjectName(QStringLiteral("what_if"));
  setAccessibleName(tr("What if"));
  problem_->setWordWrap(true);
  problem_->setAccessibleName(tr("What is wrong with the last value"));
  machine_->setWordWrap(true);
  machine_->setAccessibleName(tr("State of the machine"));
  auto* inside = new QWidget;
  auto* column = new QVBoxLayout(inside);
  column->addWidget(problem_);
  column->addWidget(make_budgets());
  column->addWidget(make_machine());
  column->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setWidget(inside);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);

  connect(&document_, &PlanDocument::opened, this, [this] { problem_->clear(); });
  connect(&document_, &PlanDocument::changed, this, &WhatIfPanel::refresh);
  connect(&document_, &PlanDocument::edited, this, &WhatIfPanel::refresh);
  refresh();
}

QWidget* WhatIfPanel::make_budgets() {
  auto* group = new QGroupBox(tr("Memory"));
  auto* form = new QFormLayout(group);
  form->setRowWrapPolicy(QFormLayout::WrapLongRows);
  const auto explain = [](QWidget* widget, const QString& name, const QString& tip) {
    widget->setAccessibleName(name);
    widget->setToolTip(tip);
  };
  explain(budget_, tr("Budget of the device"),
          tr("Most memory that the step may take on the device: 36GB (1000-based), 24GiB, 60% of "
             "the resident peak; empty = no budget"));
  budget_->setPlaceholderText(tr("none, e.g. 36GB or 60%"));
  budget_->setClearButtonEnabled(true);
  explain(counter_, tr("Counter of the budget"),
          tr("requested: the sizes asked for. active: blocks that the allocator handed out. "
             "reserved: memory taken from the driver"));
  for (const auto kind : {simulator::PeakKind::requested, simulator::PeakKind::active,
                          simulator::PeakKind::reserved}) {
    counter_->addItem(tr("%1 bytes").arg(QLatin1String(simulator::name_of(kind))),
                      static_cast<int>(kind));
  }
  explain(card_, tr("Size of the card"),
          tr("The budget with which the step runs on a card of this size: what the CUDA context "
             "takes is off"));
  card_->addItem(tr("choose a card"));
  for (const char* size : kCards) card_->addItem(QLatin1String(size), QLatin1String(size));
  explain(host_, tr("Budget of the host"),
          tr("Most pinned memory that the plan may take on the host; empty = no budget"));
  host_->setPlaceholderText(tr("none, e.g. 64GiB"));
  host_->setClearButtonEnabled(true);
  plan_->setToolTip(tr("Searches the fastest plan within the budgets"));
  form->addRow(tr("&Budget"), budget_);
  form->addRow(tr("of &kind"), counter_);
  form->addRow(tr("to fit a &card of"), card_);
  form->addRow(tr("&Host memory"), host_);
  form->addRow(plan_);
  connect(budget_, &QLineEdit::editingFinished, this, &WhatIfPanel::take_budget);
  connect(counter_, &QComboBox::activated, this, &WhatIfPanel::take_budget);
  connect(card_, &QComboBox::activated, this, &WhatIfPanel::take_card);
  connect(host_, &QLineEdit::editingFinished, this, &WhatIfPanel::take_host_budget);
  connect(plan_, &QPushButton::clicked, this, &WhatIfPanel::find_plan_requested);
  return group;
}

QWidget* WhatIfPanel::make_machine() {
  auto* group = new QGroupBox(tr("Machine"));
  auto* grid = new QGridLayout(group);
  grid->addWidget(machine_, 0, 0, 1, 4);
  auto* link_label = new QLabel(tr("&Link like"));
  link_label->setBuddy(link_);
  link_->setAccessibleName(tr("Link like that of"));
  link_->setToolTip(tr("Sets both directions to what is usually measured on such a link"));
  link_->addItem(tr("choose a link"));
  for (const KnownLink& known : kLinks) link_->addItem(tr(known.name), known.gbps);
  grid->addWidget(link_label, 1, 0);
  grid->addWidget(link_, 1, 1, 1, 3);
  connect(link_, &QComboBox::activated, this, &WhatIfPanel::take_link);
  int at = 2;
  for (const simulator::CalibrationSetting& setting : simulator::calibration_settings()) {
    Row row{&setting, new QDoubleSpinBox, new QLabel, new QToolButton};
    const QString name = QString::fromStdString(setting.name);
    const QString help = QString::fromStdString(setting.help);
    row.field->setObjectName(name);
    row.field->setAccessibleName(name);
    row.field->setAccessibleDescription(help);
    row.field->findChild<QLineEdit*>()->setAccessibleName(name);
    row.field->setToolTip(help);
    row.field->setKeyboardTracking(false);  // replayed when a value is whole
    const bool factor = setting.unit.empty();
    row.field->setDecimals(factor ? 3 : 2);
    row.field->setRange(factor ? 0 : std::max(setting.lowest, setting.unit == "us" ? 0.0 : 0.01),
                        setting.highest);
    row.field->setSingleStep(factor ? 0.05 : 5);
    if (!factor) row.field->setSuffix(QLatin1Char(' ') + QString::fromStdString(setting.unit));
    auto* label = new QLabel(name);
    label->setToolTip(help);
    label->setBuddy(row.field);
    row.mark->setAccessibleName(tr("%1 is").arg(name));
    row.back->setText(tr("Reset"));
    row.back->setAccessibleName(tr("Reset %1 to the recorded value").arg(name));
    grid->addWidget(label, at, 0);
    grid->addWidget(row.field, at, 1);
    grid->addWidget(row.mark, at, 2);
    grid->addWidget(row.back, at, 3);
    connect(row.field, &QDoubleSpinBox::valueChanged, this, &WhatIfPanel::take_settings);
    connect(row.back, &QToolButton::clicked, this, [this, row] {
      row.field->setValue(simulator::setting_value(recorded_, row.setting->name));
    });
    rows_.push_back(row);
    ++at;
  }
  reset_->setToolTip(tr("All values as they were measured when the trace was recorded"));
  grid->addWidget(reset_, at, 0, 1, 4);
  grid->setColumnStretch(1, 1);
  connect(reset_, &QPushButton::clicked, this, &WhatIfPanel::reset_machine);
  return group;
}

QDoubleSpinBox* WhatIfPanel::field(const QString& name) const {
  const auto at = std::find_if(rows_.begin(), rows_.end(),
                               [&](const Row& row) { return row.field->objectName() == name; });
  return at == rows_.end() ? nullptr : at->field;
}

bool WhatIfPanel::is_marked(const QString& name) const {
  const auto at = std::find_if(rows_.begin(), rows_.end(),
                               [&](const Row& row) { return row.field->objectName() == name; });
  return at != rows_.end() && !at->mark->text().isEmpty();
}

void WhatIfPanel::take_budget() {
  if (!document_.trace()) return;
  const auto on = static_cast<simulator::PeakKind>(counter_->currentData().toInt());
  problem_->clear();
  const simulator::PlanBudget& now = document_.state()->plan.budget;
  budget_->setModified(false);
  const QString text = budget_->text().trimmed();
  // What is shown is rounded: unchanged text is no other budget.
  if (text == size_text(now.device, now.device_text) && on == now.on) return;
  if (text.isEmpty()) {
    document_.set_budget(std::nullopt, on);
    return;
  }
  if (text == size_text(now.device, now.device_text)) {
    document_.set_budget(now.device, on);
    return;
  }
  const auto bytes =
      parse_size(text.toStdString(), planner::peak_of(document_.trace()->resident, on));
  if (!bytes) {
    problem_->setText(tr("⚠ Budget: %1").arg(QString::fromStdString(bytes.error().text())));
    return;
  }
  document_.set_budget(*bytes, on);
}

void WhatIfPanel::take_host_budget() {
  if (!document_.trace()) return;
  problem_->clear();
  const simulator::PlanBudget& now = document_.state()->plan.budget;
  host_->setModified(false);
  const QString text = host_->text().trimmed();
  if (text == size_text(now.host, now.host_text)) return;
  if (text.isEmpty()) {
    document_.set_host_budget(std::nullopt);
    return;
  }
  const auto bytes = parse_size(text.toStdString());
  if (!bytes) {
    problem_->setText(tr("⚠ Host memory: %1").arg(QString::fromStdString(bytes.error().text())));
    return;
  }
  document_.set_host_budget(*bytes);
}

void WhatIfPanel::take_card() {
  const QString size = card_->currentData().toString();
  card_->setCurrentIndex(0);
  if (size.isEmpty() || !document_.trace()) return;
  problem_->clear();
  const Bytes bytes = parse_size(size.toStdString()).value();
  const auto budget = planner::reserved_to_fit(document_.trace()->trace, bytes);
  if (budget) {
    document_.set_budget(*budget, simulator::PeakKind::reserved);
    return;
  }
  // A recording on a CPU has no reserved bytes: the card's size is then the budget itself.
  if (document_.trace()->resident.peak_reserved < 0) {
    document_.set_budget(bytes, simulator::PeakKind::active);
    return;
  }
  problem_->setText(tr("⚠ Card: %1").arg(QString::fromStdString(budget.error().text())));
}

void WhatIfPanel::take_link() {
  const QVariant gbps = link_->currentData();
  link_->setCurrentIndex(0);
  if (!gbps.isValid() || !document_.trace()) return;
  for (const Row& row : rows_) {
    if (row.setting->unit != "GB/s") continue;
    const QSignalBlocker quiet(row.field);
    row.field->setValue(gbps.toDouble());
  }
  take_settings();
}

void WhatIfPanel::take_settings() {
  if (!document_.trace()) return;
  problem_->clear();
  Calibration assumed = recorded_;
  bool any = false;
  for (const Row& row : rows_) {
    const double recorded = simulator::setting_value(recorded_, row.setting->name);
    const double least = std::pow(10.0, -row.field->decimals());
    // What the field cannot show is no change.
    if (std::abs(row.field->value() - recorded) < least * 0.51) continue;
    any = true;
    const Status set = simulator::apply_setting(assumed, row.setting->name, row.field->value());
    if (!set) {
      problem_->setText(tr("⚠ %1").arg(QString::fromStdString(set.error().text())));
      return;
    }
  }
  if (any) {
    document_.set_calibration(assumed);
  } else {
    document_.restore_calibration();
  }
  refresh();
}

void WhatIfPanel::reset_machine() {
  for (const Row& row : rows_) {
    const QSignalBlocker quiet(row.field);
    row.field->setValue(simulator::setting_value(recorded_, row.setting->name));
  }
  take_settings();
}

void WhatIfPanel::refresh() {
  const bool open = document_.trace() != nullptr;
  for (QWidget* part : std::initializer_list<QWidget*>{budget_, host_, counter_, card_, link_}) {
    part->setEnabled(open);
  }
  const bool assumed = document_.is_assumed();
  // While a change is being replayed the document still shows the machine before it.
  const bool settled = !document_.simulating().busy();
  if (open && !assumed && document_.trace()->machine == Machine::recorded) {
    recorded_ = document_.trace()->trace.calibration;
  }
  for (const Row& row : rows_) {
    row.field->setEnabled(open);
    if (open && settled && !row.field->hasFocus()) {
      const QSignalBlocker quiet(row.field);
      row.field->setValue(
          simulator::setting_value(document_.trace()->trace.calibration, row.setting->name));
    }
    const double recorded = simulator::setting_value(recorded_, row.setting->name);
    const bool other =
        open && assumed &&
        std::abs(row.field->value() - recorded) >= 0.51 * std::pow(10.0, -row.field->decimals());
    row.mark->setText(other ? tr("assumed") : QString());
    row.back->setEnabled(other);
    row.back->setToolTip(tr("Recorded: %1 %2")
                             .arg(recorded, 0, 'f', row.field->decimals())
                             .arg(QString::fromStdString(row.setting->unit)));
    QFont font = row.field->font();
    font.setItalic(other);
    row.field->setFont(font);
    row.mark->setFont(font);
  }
  reset_->setEnabled(assumed);
  machine_->setText(!open     ? tr("No trace is open. Open one with Ctrl+O, or record a step.")
                    : assumed ? tr("⚠ Assumed: predictions are of a machine that was not measured.")
                              : tr("As measured when the trace was recorded."));
  plan_->setEnabled(open && document_.state()->plan.budget.device.has_value());
  if (!open) return;
  const simulator::PlanBudget& budget = document_.state()->plan.budget;
  const QSignalBlocker quiet_budget(budget_);
  const QSignalBlocker quiet_host(host_);
  const QSignalBlocker quiet_counter(counter_);
  // What somebody is typing stays.
  if (!budget_->hasFocus() || !budget_->isModified()) {
    budget_->setText(size_text(budget.device, budget.device_text));
  }
  if (!host_->hasFocus() || !host_->isModified()) {
    host_->setText(size_text(budget.host, budget.host_text));
  }
  counter_->setCurrentIndex(counter_->findData(static_cast<int>(budget.on)));
}

}  // namespace stowage::gui
