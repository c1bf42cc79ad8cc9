#include "gui/widgets/record_dialog.h"

#include <QDir>
#include <QHBoxLayout>
#include <QToolButton>

#include "gui/widgets/last_words.h"
#include "gui/widgets/save_dialog.h"

namespace stowage::gui {

RecordDialog::RecordDialog(QWidget* parent)
    : RunDialog(tr("Record a training step"), tr("&Record"), parent),
      model_(new QComboBox),
      device_(new QComboBox),
      batch_(new QSpinBox),
      seq_(new QSpinBox),
      dtype_(new QComboBox),
      autocast_(new QComboBox),
      optimizer_(new QComboBox),
      grad_scaler_(new QComboBox),
      file_(new QLineEdit) {
  setObjectName(QStringLiteral("record"));
  const auto row = [this](const QString& label, QWidget* field, const QString& name,
                          const QString& tip) {
    field->setAccessibleName(name);
    field->setToolTip(tip);
    form().addRow(label, field);
  };
  model_->setEditable(true);
  model_->addItems({QStringLiteral("gpt2:layers=6"), QStringLiteral("mlp:layers=8,width=1024"),
                    QStringLiteral("llama3-8b:layers=9"), QStringLiteral("resnet50"),
                    QStringLiteral("unet")});
  row(tr("&Model"), model_, tr("Model"),
      tr("A built-in model, script:FILE.pt (TorchScript) or plugin:LIB.so; options behind a "
         "colon"));
  device_->addItem(tr("GPU where there is one"));
  device_->addItems({QStringLiteral("cuda"), QStringLiteral("cpu")});
  row(tr("&Device"), device_, tr("Device"), tr("Where the step runs"));
  model_->lineEdit()->setAccessibleName(tr("Model"));
  batch_->findChild<QLineEdit*>()->setAccessibleName(tr("Samples in a batch"));
  seq_->findChild<QLineEdit*>()->setAccessibleName(tr("Tokens in a sequence"));
  for (QSpinBox* field : {batch_, seq_}) {
    field->setRange(0, 1'000'000);
    field->setSpecialValueText(tr("the model's own"));
  }
  row(tr("&Batch"), batch_, tr("Samples in a batch"), tr("Samples in a batch"));
  row(tr("&Tokens"), seq_, tr("Tokens in a sequence"),
      tr("Tokens in a sequence, for models that have one"));
  dtype_->addItems({QStringLiteral("fp32"), QStringLiteral("tf32"), QStringLiteral("bf16")});
  row(tr("&Precision"), dtype_, tr("Precision"), tr("tf32 is for GPUs only"));
  autocast_->addItems({QStringLiteral("none"), QStringLiteral("bf16"), QStringLiteral("fp16")});
  row(tr("&Autocast"), autocast_, tr("Autocast"),
      tr("What forward and loss compute in; parameters keep their precision"));
  optimizer_->addItems({QStringLiteral("none"), QStringLiteral("sgd"), QStringLiteral("adam"),
                        QStringLiteral("adamw")});
  row(tr("&Optimizer"), optimizer_, tr("Optimizer"), tr("Whose update is part of the step"));
  grad_scaler_->addItems({QStringLiteral("none"), QStringLiteral("on")});
  row(tr("&Gradient scaler"), grad_scaler_, tr("Gradient scaler"),
      tr("Scales the loss and skips the update where a gradient overflows"));
  file_->setText(QDir::home().filePath(QStringLiteral("step.trace.json.gz")));
  file_->setAccessibleName(tr("File to write"));
  file_->setToolTip(tr("The trace; compressed when the name ends in .gz"));
  auto* browse = new QToolButton;
  browse->setText(tr("…"));
  browse->setAccessibleName(tr("Choose the file to write"));
  browse->setToolTip(tr("Choose the file to write"));
  auto* path = new QHBoxLayout;
  path->addWidget(file_, 1);
  path->addWidget(browse);
  auto* label = new QLabel(tr("&File"));
  label->setBuddy(file_);
  form().addRow(label, path);

  connect(browse, &QToolButton::clicked, this, [this] {
    const QString chosen =
        ask_where_to_save(this, tr("Record into"), file_->text(), QStringLiteral("trace.json.gz"),
                          tr("Traces (*.trace.json.gz *.trace.json)"));
    if (!chosen.isEmpty()) file_->setText(chosen);
  });
  connect(model_, &QComboBox::currentTextChanged, this, &RecordDialog::refresh);
  for (QComboBox* field : {device_, dtype_, autocast_, optimizer_, grad_scaler_}) {
    connect(field, &QComboBox::currentIndexChanged, this, &RecordDialog::refresh);
  }
  connect(batch_, &QSpinBox::valueChanged, this, &RecordDialog::refresh);
  connect(seq_, &QSpinBox::valueChanged, this, &RecordDialog::refresh);
  connect(file_, &QLineEdit::textChanged, this, &RecordDialog::refresh);
  refresh();
}

RecordDialog::~RecordDialog() {
  take_last_words(*this);
}

QStringList RecordDialog::arguments(QString& why_not) const {
  const QString model = model_->currentText().trimmed();
  if (model.isEmpty()) {
    why_not = tr("Name a model.");
    return {};
  }
  if (file_->text().isEmpty()) {
    why_not = tr("Name the file to write.");
    return {};
  }
  const bool is_scaled = grad_scaler_->currentIndex() > 0;
  if (is_scaled && optimizer_->currentIndex() == 0) {
    why_not = tr("A gradient scaler needs an optimizer.");
    return {};
  }
  QStringList words{QStringLiteral("profile"), model, QStringLiteral("-o"), file_->text()};
  const auto add = [&](const char* name, const QString& value) {
    words << QLatin1String(name) << value;
  };
  if (device_->currentIndex() > 0) add("--device", device_->currentText());
  if (batch_->value() > 0) add("--batch", QString::number(batch_->value()));
  if (seq_->value() > 0) add("--seq", QString::number(seq_->value()));
  add("--dtype", dtype_->currentText());
  if (autocast_->currentIndex() > 0) add("--autocast", autocast_->currentText());
  add("--optimizer", optimizer_->currentText());
  if (is_scaled) add("--grad-scaler", grad_scaler_->currentText());
  return words;
}

void RecordDialog::finished(const CommandRun::End& end) {
  if (end.code != 0) {
    set_status(tr("⚠ The recording failed (exit code %1); the log says why.").arg(end.code));
    return;
  }
  set_status(tr("Recorded into %1.").arg(file_->text()));
  Q_EMIT recorded(file_->text());
}

}  // namespace stowage::gui
