// A dialog around a command of ours: what to run, the command line as one could type it, its log
// while it runs, and Cancel, which ends it. It does not block the window.
#pragma once

#include <QDialog>
#include <QFormLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>

#include "gui/model/command_run.h"

namespace stowage::gui {

class RunDialog : public QDialog {
  Q_OBJECT
 public:
  [[nodiscard]] QPushButton& run_button() { return *run_; }
  [[nodiscard]] QPushButton& cancel_button() { return *cancel_; }
  [[nodiscard]] QPlainTextEdit& log() { return *log_; }
  [[nodiscard]] QString status() const { return status_->text(); }
  [[nodiscard]] QString command_line() const { return line_->text(); }
  [[nodiscard]] CommandRun& command() { return command_; }
  // Instead of find_stowage_command().
  void set_program(const QString& program);

  void reject() override;  // ends what runs, and closes

 protected:
  RunDialog(const QString& title, const QString& run_text, QWidget* parent);

  [[nodiscard]] QFormLayout& form() { return *form_; }
  // What to run; empty = it cannot be, and `why_not` says why.
  [[nodiscard]] virtual QStringList arguments(QString& why_not) const = 0;
  // Ahead of the start; false = it does not start, and the status was set.
  virtual bool prepare() { return true; }
  virtual void finished(const CommandRun::End& end) = 0;
  void refresh();
  void set_status(const QString& text) { status_->setText(text); }

 private:
  void start();
  void end(const CommandRun::End& end);

  QString program_;
  QFormLayout* form_;
  QLabel* line_;
  QLabel* status_;
  QPlainTextEdit* log_;
  QPushButton* run_;
  QPushButton* cancel_;
  CommandRun command_;
};

}  // namespace stowage::gui
