#include "gui/widgets/run_dialog.h"

#include <QFontDatabase>
#include <QHBoxLayout>
#include <QVBoxLayout>

namespace stowage::gui {

RunDialog::RunDialog(const QString& title, const QString& run_text, QWidget* parent)
    : QDialog(parent),
      program_(find_stowage_command()),
      form_(new QFormLayout),
      line_(new QLabel),
      status_(new QLabel),
      log_(new QPlainTextEdit),
      run_(new QPushButton(run_text)),
      cancel_(new QPushButton(tr("Cancel"))) {
  setWindowTitle(title);
  const QFont fixed = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  line_->setFont(fixed);
  line_->setWordWrap(true);
  line_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  line_->setAccessibleName(tr("Command line"));
  status_->setWordWrap(true);
  status_->setAccessibleName(tr("State"));
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(10'000);
  log_->setFont(fixed);
  log_->setAccessibleName(tr("Log of the command"));
  log_->setPlaceholderText(tr("What the command writes appears here."));
  run_->setDefault(true);
  cancel_->setToolTip(tr("Ends the command; unfinished files are removed"));
  cancel_->setEnabled(false);
  run_->setToolTip(tr("Starts the command that is shown"));
  auto* close = new QPushButton(tr("Close"));
  close->setToolTip(tr("Ends what runs, and closes (Esc)"));
  close->setAutoDefault(false);
  cancel_->setAutoDefault(false);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(run_);
  buttons->addWidget(cancel_);
  buttons->addStretch(1);
  buttons->addWidget(close);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form_);
  layout->addWidget(line_);
  layout->addWidget(log_, 1);
  layout->addWidget(status_);
  layout->addLayout(buttons);
  const int em = fontMetrics().height();
  resize(42 * em, 32 * em);
  connect(run_, &QPushButton::clicked, this, &RunDialog::start);
  connect(cancel_, &QPushButton::clicked, &command_, &CommandRun::cancel);
  connect(close, &QPushButton::clicked, this, &RunDialog::reject);
  connect(&command_, &CommandRun::logged, this, [this](const QString& text) {
    log_->moveCursor(QTextCursor::End);
    log_->insertPlainText(text);
    log_->moveCursor(QTextCursor::End);
  });
  connect(&command_, &CommandRun::ended, this, &RunDialog::end);
}

void RunDialog::set_program(const QString& program) {
  program_ = program;
  refresh();
}

void RunDialog::refresh() {
  QString why_not;
  const QStringList words = arguments(why_not);
  line_->setText(words.isEmpty() ? QString() : command_line_text(QStringLiteral("stowage"), words));
  const bool running = command_.running();
  cancel_->setEnabled(running);
  run_->setEnabled(!running && !words.isEmpty() && !program_.isEmpty());
  if (running) return;
  if (program_.isEmpty()) {
    status_->setText(
        tr("⚠ The stowage command was not found beside this program or on PATH. Build "
           "it, or install it."));
  } else if (words.isEmpty()) {
    status_->setText(why_not);
  } else {
    status_->clear();
  }
}

void RunDialog::start() {
  if (command_.running() || !prepare()) return;
  QString why_not;
  const QStringList words = arguments(why_not);
  if (words.isEmpty()) return;
  log_->clear();
  status_->setText(tr("It runs."));
  run_->setEnabled(false);
  cancel_->setEnabled(true);
  command_.start(program_, words);
}

void RunDialog::end(const CommandRun::End& end) {
  refresh();
  if (end.cancelled) {
    status_->setText(tr("Cancelled."));
    return;
  }
  if (end.code < 0) {
    status_->setText(tr("⚠ It did not run: %1.").arg(end.problem));
    return;
  }
  finished(end);
}

void RunDialog::reject() {
  command_.cancel();
  QDialog::reject();
}

}  // namespace stowage::gui
