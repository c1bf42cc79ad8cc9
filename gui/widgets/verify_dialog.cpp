#include "gui/widgets/verify_dialog.h"

#include <QFileInfo>
#include <QLineEdit>

#include "gui/model/run_result_json.h"
#include "gui/widgets/last_words.h"
#include "gui/widgets/value_texts.h"
#include "report/words.h"
#include "simulator/plan/plan_json.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

template <class Value, class Text>
QString pair_text(const QString& name, const std::optional<Value>& predicted,
                  const std::optional<Value>& measured, Text text) {
  if (!predicted || !measured) return {};
  return QObject::tr("%1: predicted %2, measured %3 (%4). ")
      .arg(name, text(*predicted), text(*measured),
           QString::fromStdString(report::relative(*measured, *predicted)));
}

}  // namespace

VerifyDialog::VerifyDialog(PlanDocument& document, QWidget* parent)
    : RunDialog(tr("Verify the plan on this machine"), tr("&Verify"), parent),
      document_(document),
      device_(new QComboBox),
      steps_(new QSpinBox) {
  setObjectName(QStringLiteral("verify"));
  device_->addItem(tr("as the trace says"));
  device_->addItems({QStringLiteral("cuda"), QStringLiteral("cpu")});
  device_->setAccessibleName(tr("Device"));
  device_->setToolTip(tr("Where the steps run"));
  steps_->setRange(0, 1000);
  steps_->setSpecialValueText(tr("the usual number"));
  steps_->setAccessibleName(tr("Steps"));
  steps_->findChild<QLineEdit*>()->setAccessibleName(tr("Steps"));
  steps_->setToolTip(tr("Training steps, of the reference and of the plan"));
  form().addRow(tr("&Device"), device_);
  form().addRow(tr("&Steps"), steps_);
  connect(device_, &QComboBox::currentIndexChanged, this, &VerifyDialog::refresh);
  connect(steps_, &QSpinBox::valueChanged, this, &VerifyDialog::refresh);
  connect(&document_, &PlanDocument::changed, this, &VerifyDialog::refresh);
  refresh();
}

VerifyDialog::~VerifyDialog() {
  take_last_words(*this);
}

QString VerifyDialog::plan_file() const {
  return folder_.filePath(QStringLiteral("plan.json"));
}

QString VerifyDialog::result_file() const {
  return folder_.filePath(QStringLiteral("result.json"));
}

QStringList VerifyDialog::arguments(QString& why_not) const {
  const SimulatedPtr& now = document_.current();
  if (!now) {
    why_not = tr("No trace is open. Open one with Ctrl+O, or record a step.");
    return {};
  }
  const QString trace = QString::fromStdString(now->trace->path);
  if (!QFileInfo(trace).isFile()) {
    why_not =
        tr("The trace is no file (%1): verify reads it again. Save or record it first.").arg(trace);
    return {};
  }
  if (!folder_.isValid()) {
    why_not = tr("⚠ There is no place for temporary files: %1").arg(folder_.errorString());
    return {};
  }
  QStringList words{QStringLiteral("verify"),  QStringLiteral("--json"),
                    QStringLiteral("--plan"),  plan_file(),
                    QStringLiteral("--trace"), QFileInfo(trace).absoluteFilePath()};
  if (device_->currentIndex() > 0) words << QStringLiteral("--device") << device_->currentText();
  if (steps_->value() > 0) words << QStringLiteral("--steps") << QString::number(steps_->value());
  return words;
}

bool VerifyDialog::prepare() {
  if (!document_.current()) return false;
  const std::string file = plan_file().toStdString();
  const Status written =
      write_file(file, simulator::plan_to_json(plan_for_writing(*document_.current(), file)));
  if (!written) set_status(QString::fromStdString(written.error().text()));
  return written.ok();
}

void VerifyDialog::finished(const CommandRun::End& end) {
  const std::string text = command().output().toStdString();
  const auto result = run_result_from_json(text, "the result");
  if (!result) {
    set_status(tr("⚠ There is no result (exit code %1); the log says why.").arg(end.code));
    return;
  }
  QString words;
  if (result->bitwise) {
    words = *result->bitwise ? tr("✓ Losses and gradients are equal, bit by bit. ")
                             : tr("✗ Losses or gradients differ. ");
  }
  if (!result->on_plan) {
    words += tr("✗ The step did not follow the plan: %1. ")
                 .arg(QString::fromStdString(result->first_difference));
  }
  words += pair_text(tr("Requested peak"), result->predicted.peak_requested,
                     result->measured.peak_requested, bytes_text);
  words += pair_text(tr("Active peak"), result->predicted.peak_active, result->measured.peak_active,
                     bytes_text);
  words += pair_text(tr("Step"), result->predicted.step, result->measured.step, time_text);
  set_status(words.trimmed());
  if (const Status written = write_file(result_file().toStdString(), text); written) {
    Q_EMIT verified(result_file());
  }
}

}  // namespace stowage::gui
