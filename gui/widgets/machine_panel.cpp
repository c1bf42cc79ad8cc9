#include "gui/widgets/machine_panel.h"

#include <QCoreApplication>
#include <QGridLayout>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/widgets/last_words.h"

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

// Settings in words; the key of the command line is in the tool tip.
struct Word {
  const char* name;
  const char* text;
};
constexpr Word kWords[] = {
    {"link.h2d_gbps", QT_TRANSLATE_NOOP("machine", "Copies to the device")},
    {"link.d2h_gbps", QT_TRANSLATE_NOOP("machine", "Copies to the host")},
    {"link.latency_us", QT_TRANSLATE_NOOP("machine", "Latency of a copy")},
    {"link.duplex", QT_TRANSLATE_NOOP("machine", "Copies both ways at once")},
    {"link.copy_interference", QT_TRANSLATE_NOOP("machine", "Copies while compute works")},
    {"link.compute_interference", QT_TRANSLATE_NOOP("machine", "Compute while copies go")},
    {"compute.least_time", QT_TRANSLATE_NOOP("machine", "Time of compute after long rests")},
    {"compute.rest_gain", QT_TRANSLATE_NOOP("machine", "Compute time saved by resting")},
};

// "Copies to the device, GB/s", "Latency of a copy, us"; a factor says of what.
QString words_of(const simulator::CalibrationSetting& setting) {
  const auto known = std::find_if(std::begin(kWords), std::end(kWords),
                                  [&](const Word& word) { return setting.name == word.name; });
  const QString text = known == std::end(kWords)
                           ? QString::fromStdString(setting.help)
                           : QCoreApplication::translate("machine", known->text);
  if (setting.unit.empty()) return QObject::tr("%1, factor").arg(text);
  return QObject::tr("%1, %2").arg(text, QString::fromStdString(setting.unit));
}

}  // namespace

MachinePanel::MachinePanel(PlanDocument& document, QWidget* parent)
    : QGroupBox(tr("Machine"), parent),
      document_(document),
      link_(new QComboBox),
      reset_(new QPushButton(tr("&Reset to the recorded machine"))),
      state_(new QLabel) {
  setAccessibleName(tr("Machine"));
  state_->setWordWrap(true);
  state_->setAccessibleName(tr("State of the machine"));
  auto* link_label = new QLabel(tr("&Link like"));
  link_label->setBuddy(link_);
  link_->setObjectName(QStringLiteral("link"));
  link_->setAccessibleName(tr("Link like that of"));
  link_->setToolTip(tr("Sets both directions to what is usually measured on such a link, in GB/s"));
  link_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  link_->setMinimumContentsLength(8);
  link_->addItem(tr("as recorded"));
  for (const KnownLink& known : kLinks) link_->addItem(tr(known.name), known.gbps);
  reset_->setToolTip(tr("All values as they were measured when the trace was recorded"));
  auto* grid = new QGridLayout(this);
  // Above the values, so that the way back is seen as soon as something is assumed.
  auto* top = new QVBoxLayout;
  top->addWidget(state_);
  top->addWidget(reset_, 0, Qt::AlignLeft);
  grid->addLayout(top, 0, 0, 1, 4);
  grid->addWidget(link_label, 1, 0);
  grid->addWidget(link_, 1, 1, 1, 3);
  int at = 2;
  for (const simulator::CalibrationSetting& setting : simulator::calibration_settings()) {
    const Row row = make_row(setting);
    // Not broken within "GB/s".
    auto* label = new QLabel(words_of(setting).replace('/', QStringLiteral("/\u2060")));
    label->setToolTip(row.field->toolTip());
    label->setWordWrap(true);
    label->setBuddy(row.field);
    grid->addWidget(label, at, 0);
    grid->addWidget(row.field, at, 1);
    grid->addWidget(row.mark, at, 2);
    grid->addWidget(row.back, at, 3);
    rows_.push_back(row);
    ++at;
  }
  grid->setColumnStretch(1, 1);
  connect(link_, &QComboBox::activated, this, &MachinePanel::take_link);
  connect(reset_, &QPushButton::clicked, this, &MachinePanel::reset);
  connect(&document_, &PlanDocument::changed, this, &MachinePanel::refresh);
  connect(&document_, &PlanDocument::edited, this, &MachinePanel::refresh);
  refresh();
}

MachinePanel::~MachinePanel() {
  take_last_words(*this);
}

MachinePanel::Row MachinePanel::make_row(const simulator::CalibrationSetting& setting) {
  const Row row{&setting, new QDoubleSpinBox, new QLabel, new QToolButton};
  const QString key = QString::fromStdString(setting.name);
  const QString name = words_of(setting);
  const QString unit = QString::fromStdString(setting.unit);
  const QString help = QString::fromStdString(setting.help);
  const bool factor = unit.isEmpty();
  row.field->setObjectName(key);
  row.field->setAccessibleName(name);
  row.field->setAccessibleDescription(help);
  row.field->findChild<QLineEdit*>()->setAccessibleName(row.field->accessibleName());
  row.field->setToolTip((factor ? tr("%1; a factor, without a unit\n%2").arg(help, key)
                                : tr("%1, in %3\n%2").arg(help, key, unit)));
  row.field->setKeyboardTracking(false);  // replayed when a value is whole
  row.field->setDecimals(factor ? 3 : 2);
  row.field->setRange(factor ? 0 : std::max(setting.lowest, unit == "us" ? 0.0 : 0.01),
                      setting.highest);
  row.field->setSingleStep(factor ? 0.05 : 5);
  if (!factor) row.field->setSuffix(QLatin1Char(' ') + unit);
  row.mark->setAccessibleName(tr("%1 is").arg(name));
  row.back->setText(tr("Reset"));
  row.back->setAccessibleName(tr("Reset %1 to the recorded value").arg(name));
  connect(row.field, &QDoubleSpinBox::valueChanged, this, &MachinePanel::take_settings);
  connect(row.back, &QToolButton::clicked, this, [this, row] {
    row.field->setValue(simulator::setting_value(recorded_, row.setting->name));
  });
  return row;
}

const MachinePanel::Row* MachinePanel::row_of(const QString& name) const {
  const auto at = std::find_if(rows_.begin(), rows_.end(),
                               [&](const Row& row) { return row.field->objectName() == name; });
  return at == rows_.end() ? nullptr : &*at;
}

QDoubleSpinBox* MachinePanel::field(const QString& name) const {
  const Row* row = row_of(name);
  return row == nullptr ? nullptr : row->field;
}

bool MachinePanel::is_marked(const QString& name) const {
  const Row* row = row_of(name);
  return row != nullptr && !row->mark->text().isEmpty();
}

bool MachinePanel::differs(const Row& row) const {
  const double recorded = simulator::setting_value(recorded_, row.setting->name);
  return std::abs(row.field->value() - recorded) >= 0.51 * std::pow(10.0, -row.field->decimals());
}

void MachinePanel::take_link() {
  const QVariant gbps = link_->currentData();
  if (!gbps.isValid() || !document_.trace()) return refresh();
  for (const Row& row : rows_) {
    if (row.setting->unit != "GB/s") continue;
    const QSignalBlocker quiet(row.field);
    row.field->setValue(gbps.toDouble());
  }
  take_settings();
}

void MachinePanel::take_settings() {
  if (!document_.trace()) return;
  Calibration assumed = recorded_;
  bool any = false;
  for (const Row& row : rows_) {
    if (!differs(row)) continue;
    any = true;
    const Status set = simulator::apply_setting(assumed, row.setting->name, row.field->value());
    if (!set) {
      Q_EMIT refused(set.error());
      return;
    }
  }
  if (any) {
    document_.set_calibration(assumed);
  } else {
    document_.restore_calibration();
  }
  Q_EMIT taken();
  refresh();
}

void MachinePanel::reset() {
  for (const Row& row : rows_) {
    const QSignalBlocker quiet(row.field);
    row.field->setValue(simulator::setting_value(recorded_, row.setting->name));
  }
  take_settings();
}

int MachinePanel::known_link() const {
  for (int i = 1; i < link_->count(); ++i) {
    const bool fits = std::all_of(rows_.begin(), rows_.end(), [&](const Row& row) {
      return row.setting->unit != "GB/s" || row.field->value() == link_->itemData(i).toDouble();
    });
    if (fits) return i;
  }
  return 0;
}

void MachinePanel::refresh() {
  const bool open = document_.trace() != nullptr;
  const bool assumed = document_.is_assumed();
  // While a change is being replayed the document still shows the machine before it.
  const bool settled = !document_.simulating().busy();
  if (open && !assumed && document_.trace()->machine == MachineKind::recorded) {
    recorded_ = document_.trace()->trace.calibration;
  }
  link_->setEnabled(open);
  for (const Row& row : rows_) {
    row.field->setEnabled(open);
    if (open && settled && !row.field->hasFocus()) {
      const QSignalBlocker quiet(row.field);
      row.field->setValue(
          simulator::setting_value(document_.trace()->trace.calibration, row.setting->name));
    }
    const bool other = open && assumed && differs(row);
    row.mark->setText(other ? tr("assumed") : QString());
    row.back->setEnabled(other);
    row.back->setToolTip(tr("Recorded: %1 %2")
                             .arg(simulator::setting_value(recorded_, row.setting->name), 0, 'f',
                                  row.field->decimals())
                             .arg(QString::fromStdString(row.setting->unit)));
    QFont font = row.field->font();
    font.setItalic(other);
    row.field->setFont(font);
    row.mark->setFont(font);
  }
  link_->setItemText(0, assumed ? tr("none of these") : tr("as recorded"));
  link_->setCurrentIndex(open ? known_link() : 0);
  reset_->setEnabled(assumed);
  state_->setText(!open     ? tr("No trace is open. Open one with Ctrl+O, or record a step.")
                  : assumed ? tr("⚠ Assumed: predictions are of a machine that was not measured.")
                            : tr("As measured when the trace was recorded."));
}

}  // namespace stowage::gui
